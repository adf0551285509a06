"""Named networks: `paper` is LeWM's to the letter, `compact` is what we ship, made for two CPU cores."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

from models.conv import ConvEncoder
from models.layers import ActionEncoder, Head
from models.markov import Markov
from models.moments import MomentsEncoder
from models.predictor import Predictor
from models.vit import ViT
from models.world_model import WorldModel

ACTIVATIONS: dict[str, type[nn.Module]] = {"gelu": nn.GELU, "relu": nn.ReLU, "silu": nn.SiLU}


@dataclass(frozen=True)
class Paper:
    """LeWM's network: ViT-tiny/14 on 224 px, six causal AdaLN-zero blocks; 18,034,478 parameters for a 2-D action."""

    image_size: int = 224
    latent: int = 192
    history: int = 3
    action_block: int = 5
    dropout: float = 0.1

    def build(self, action_dim: int) -> WorldModel:
        if self.image_size % 14:
            raise ValueError(
                f"the paper preset cuts 14 px patches: a side of {self.image_size} px is not a multiple of 14"
            )
        return WorldModel(
            ViT(self.image_size, patch=14, width=192, depth=12, heads=3, mlp=768),
            Head(192, 2048, self.latent),
            ActionEncoder(self.action_block * action_dim, hidden=768, outputs=192, bottleneck=10),
            Predictor(
                self.latent, 192, depth=6, heads=16, head_dim=64, mlp=2048, history=self.history, dropout=self.dropout,
                inner_norm=True,
            ),
            Head(192, 2048, self.latent),
            image_size=self.image_size, latent=self.latent, action_dim=action_dim, action_block=self.action_block,
            history=self.history, residual=False,
        )  # fmt: skip


@dataclass(frozen=True)
class Compact:
    """A small encoder that reads feature maps by their moments, and a plain residual predictor."""

    image_size: int = 64
    latent: int = 48
    history: int = 3
    action_block: int = 5
    encoder: Literal["strides", "moments"] = "moments"
    """Convolutions read by their spatial moments, or strided ones whose features are read as they are."""
    channels: tuple[int, ...] = (16, 32)
    """Output channels of each stage of the encoder."""
    stem: int = 4
    """Stride of the first stage; the others stride by 2, or not at all where moments are taken."""
    hidden: int = 512
    """Width of the encoder's last hidden layer."""
    predictor: Literal["transformer", "markov"] = "markov"
    """A plain network of the last few latents, or attention over them."""
    width: int = 512
    """Width of the predictor."""
    depth: int = 3
    """Hidden layers of the plain network, or blocks of the transformer."""
    heads: int = 4
    """Attention heads of the transformer."""
    mlp: int = 768
    """Hidden width of the transformer's MLPs."""
    dropout: float = 0.0
    activation: Literal["gelu", "relu", "silu"] = "relu"
    """Nonlinearity of the encoder."""
    residual: bool = True
    """Predict the change of the latent; without it latents become fast functions of the agent alone."""

    def build(self, action_dim: int) -> WorldModel:
        moments = self.encoder == "moments"
        cell = self.stem if moments else self.stem * 2 ** (len(self.channels) - 1)
        attends = self.predictor == "transformer"
        if self.image_size % cell or (attends and self.width % self.heads):
            raise ValueError(
                f"the compact preset shrinks the picture {cell} times and splits its width over {self.heads} heads: "
                f"{self.image_size} px and width {self.width} do not divide"
            )
        activation = ACTIVATIONS[self.activation]
        encoder: ConvEncoder | MomentsEncoder
        if moments:
            encoder = MomentsEncoder(self.image_size, self.channels, self.stem, activation)
            features = encoder.features
        else:
            encoder = ConvEncoder(self.channels, self.stem, activation)
            features = self.channels[-1] * (self.image_size // cell) ** 2
        predictor: Markov | Predictor
        action_encoder: nn.Module
        action_size = self.action_block * action_dim
        if self.predictor == "markov":
            predictor = Markov(self.latent, action_size, self.width, self.depth, self.dropout, self.history)
            action_encoder = nn.Identity()
        else:
            predictor = Predictor(
                self.latent, self.width, self.depth, self.heads, head_dim=self.width // self.heads, mlp=self.mlp,
                history=self.history, dropout=self.dropout, inner_norm=False,
            )  # fmt: skip
            nn.init.normal_(predictor.position, std=0.02)
            action_encoder = ActionEncoder(action_size, self.width, self.width)
        pred_proj = nn.Linear(self.width, self.latent)
        if self.residual:  # so that the first prediction is "nothing changes"
            nn.init.zeros_(pred_proj.weight)
            nn.init.zeros_(pred_proj.bias)
        return WorldModel(
            encoder,
            Head(features, self.hidden, self.latent, activation),
            action_encoder,
            predictor,
            pred_proj,
            image_size=self.image_size, latent=self.latent, action_dim=action_dim, action_block=self.action_block,
            history=self.history, residual=self.residual,
        )  # fmt: skip


@dataclass(frozen=True)
class CompactTransformer(Compact):
    """A strided convolutional encoder and a small causal transformer: LeWM's idea at the size of two CPU cores."""

    latent: int = 192
    encoder: Literal["strides", "moments"] = "strides"
    channels: tuple[int, ...] = (16, 32, 64, 128)
    stem: int = 2
    hidden: int = 256
    predictor: Literal["transformer", "markov"] = "transformer"
    width: int = 192
    depth: int = 2
    dropout: float = 0.1
    activation: Literal["gelu", "relu", "silu"] = "gelu"


PRESETS: dict[str, type[Paper] | type[Compact]] = {
    "compact": Compact,
    "compact-transformer": CompactTransformer,
    "paper": Paper,
}


def settings(preset: str, **changes: Any) -> dict[str, Any]:
    """Every setting of `preset` after `changes`, as plain values that `build` takes back."""
    if preset not in PRESETS:
        raise ValueError(f"unknown preset '{preset}': choose one of {', '.join(PRESETS)}")
    known = [field.name for field in dataclasses.fields(PRESETS[preset])]
    if unknown := [name for name in changes if name not in known]:
        raise ValueError(f"the {preset} preset has no setting '{unknown[0]}': it has {', '.join(known)}")
    return dataclasses.asdict(PRESETS[preset](**changes))


def build(preset: str, action_dim: int, **changes: Any) -> WorldModel:
    """The network called `preset` for actions of `action_dim` numbers, with `changes` to the preset's settings."""
    chosen = settings(preset, **changes)
    return PRESETS[preset](**chosen).build(action_dim)
