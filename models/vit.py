"""A plain vision transformer whose parameters correspond one to one to Hugging Face's `ViTModel` without pooling."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ViT(nn.Module):
    """Pre-norm ViT; the class token of the last layer, after the final norm, describes the picture.

    `(B, 3, S, S)` to `(B, width)`. The initial weights are Hugging Face's (truncated normal 0.02, zero biases).
    """

    def __init__(self, image_size: int, patch: int, width: int, depth: int, heads: int, mlp: int):
        super().__init__()
        tokens = (image_size // patch) ** 2 + 1
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.class_token = nn.Parameter(torch.empty(1, 1, width))
        self.position = nn.Parameter(torch.empty(1, tokens, width))
        self.blocks = nn.ModuleList(Block(width, heads, mlp) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.apply(self._initialise)
        nn.init.trunc_normal_(self.class_token, std=0.02)
        nn.init.trunc_normal_(self.position, std=0.02)

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.trunc_normal_(module.weight, std=0.02)
            assert module.bias is not None
            nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1) + self.position
        for block in self.blocks:
            tokens = block(tokens)
        return self.norm(tokens[:, 0])


class Block(nn.Module):
    """Self-attention and MLP, each after a norm and around a skip: `(B, N, width)` to the same."""

    def __init__(self, width: int, heads: int, mlp: int):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)
        self.mlp = nn.Sequential(nn.Linear(width, mlp), nn.GELU(), nn.Linear(mlp, width))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.norm1(tokens)
        query, key, value = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        attended = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        tokens = tokens + self.out(attended)
        return tokens + self.mlp(self.norm2(tokens))
