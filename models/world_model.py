"""The world model: pictures and actions in the task's own units come in, latents go out."""

import hashlib

import torch
from torch import Tensor, nn

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class WorldModel(nn.Module):
    """Encoder, projector, action encoder, predictor and prediction head, with every normaliser inside.

    An action block is the `action_block` actions between two frames, concatenated: `(k*A,)`. With `residual` the
    prediction head gives the change of the latent, otherwise the next latent itself.
    """

    pixel_mean: Tensor
    pixel_std: Tensor
    action_mean: Tensor
    action_std: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        projector: nn.Module,
        action_encoder: nn.Module,
        predictor: nn.Module,
        pred_proj: nn.Module,
        *,
        image_size: int,
        latent: int,
        action_dim: int,
        action_block: int,
        history: int,
        residual: bool,
    ):
        super().__init__()
        self.encoder = encoder
        self.projector = projector
        self.action_encoder = action_encoder
        self.predictor = predictor
        self.pred_proj = pred_proj
        self.image_size = image_size
        self.latent = latent
        self.history = history
        self.residual = residual
        self.action_dim = action_dim
        self.action_block = action_block
        self.register_buffer("pixel_mean", torch.tensor(IMAGENET_MEAN))
        self.register_buffer("pixel_std", torch.tensor(IMAGENET_STD))
        self.register_buffer("action_mean", torch.zeros(action_dim))
        self.register_buffer("action_std", torch.ones(action_dim))

    def set_action_scale(self, mean: Tensor, std: Tensor) -> None:
        """Z-score actions with these statistics `(A,)` of the training split from now on."""
        self.action_mean.copy_(mean)
        self.action_std.copy_(std)

    def encoder_fingerprint(self) -> str:
        """Sixteen hexadecimal digits that name the encoder: equal digits, equal latents."""
        digest = hashlib.sha256()
        for part in (self.encoder, self.projector):
            for name, tensor in part.state_dict().items():
                digest.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    def encode(self, pixels: Tensor) -> Tensor:
        """Latents `(…, D)` of uint8 pictures `(…, H, W, 3)`."""
        frames = pixels.flatten(0, -4)
        # Rows of width * 3 numbers broadcast four times faster than pixels of 3.
        scale = (1 / (255 * self.pixel_std)).repeat(frames.shape[2])
        shift = (-self.pixel_mean / self.pixel_std).repeat(frames.shape[2])
        rows = torch.addcmul(shift, frames.flatten(-2).to(scale.dtype), scale)
        # Moving the axis only relabels it: the memory stays channels-last, which convolutions on a CPU prefer.
        images = rows.view(frames.shape).movedim(-1, 1)
        return self.projector(self.encoder(images)).unflatten(0, pixels.shape[:-3])

    def embed_actions(self, action_blocks: Tensor) -> Tensor:
        """Action embeddings `(…, C)` of raw action blocks `(…, k*A)`."""
        return self.action_encoder(self.normalise_actions(action_blocks))

    def normalise_actions(self, action_blocks: Tensor) -> Tensor:
        """Z-scored action blocks `(…, k*A)`; the statistics are those of a single action."""
        return (action_blocks - self.action_mean.repeat(self.action_block)) / self.action_std.repeat(self.action_block)

    def predict(self, latents: Tensor, action_blocks: Tensor, newest: bool = False) -> Tensor:
        """Next latents `(B, T, D)` of latents `(B, T, D)` and their action blocks `(B, T, k*A)`; T <= history.

        With `newest` only the last of them, `(B, 1, D)`.
        """
        hidden = self.predictor(latents, self.embed_actions(action_blocks), newest)
        output = self.pred_proj(hidden.flatten(0, 1)).unflatten(0, hidden.shape[:2])
        return latents[:, -output.shape[1] :] + output if self.residual else output

    def rollout(self, context: Tensor, past_actions: Tensor, actions: Tensor) -> Tensor:
        """Open-loop latents `(N, H, D)` of N candidate plans `(N, H, k*A)`, one plain predictor call per step.

        `context` `(1 or N, h, D)` holds the last 1 <= h <= history real latents, `past_actions` `(1 or N, h-1, k*A)`
        the blocks between them. Each step reads at most the last `history` latents, placed at positions 0, 1, ...
        """
        plans = len(actions)
        latents = context.expand(plans, -1, -1)
        blocks = torch.cat([past_actions.expand(plans, -1, -1), actions], dim=1)
        seen = context.shape[1]
        for step in range(actions.shape[1]):
            end = seen + step
            start = max(0, end - self.history)
            following = self.predict(latents[:, start:end], blocks[:, start:end], newest=True)
            latents = torch.cat([latents, following], dim=1)
        return latents[:, seen:]
