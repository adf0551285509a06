"""A causal transformer over the last few latents, steered at every step by that step's action (AdaLN-zero)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Predictor(nn.Module):
    """Hidden states `(B, T, width)` of latents `(B, T, D)` and action embeddings `(B, T, width)`, T <= history.

    `inner_norm` adds LeWM's second, affine norm in front of each attention and MLP.
    """

    def __init__(
        self,
        latent: int,
        width: int,
        depth: int,
        heads: int,
        head_dim: int,
        mlp: int,
        history: int,
        dropout: float,
        inner_norm: bool,
    ):
        super().__init__()
        self.position = nn.Parameter(torch.randn(1, history, latent))
        self.input = nn.Identity() if latent == width else nn.Linear(latent, width)
        self.blocks = nn.ModuleList(Block(width, heads, head_dim, mlp, dropout, inner_norm) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, latents: Tensor, actions: Tensor, newest: bool = False) -> Tensor:
        """With `newest` only the last step's hidden state `(B, 1, width)`."""
        hidden = self.input(latents + self.position[:, : latents.shape[1]])
        for block in self.blocks:
            hidden = block(hidden, actions)
        return self.norm(hidden[:, -1:] if newest else hidden)


class Block(nn.Module):
    """Attention and MLP whose shift, scale and gate come from the action; all gates start closed."""

    def __init__(self, width: int, heads: int, head_dim: int, mlp: int, dropout: float, inner_norm: bool):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.attention = Attention(width, heads, head_dim, dropout, inner_norm)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width) if inner_norm else nn.Identity(),
            nn.Linear(width, mlp),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(mlp, width),
            nn.Dropout(dropout),
        )
        modulation = nn.Linear(width, 6 * width)
        nn.init.zeros_(modulation.weight)
        nn.init.zeros_(modulation.bias)
        self.modulation = nn.Sequential(nn.SiLU(), modulation)

    def forward(self, hidden: Tensor, actions: Tensor) -> Tensor:
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(actions).chunk(6, dim=-1)
        hidden = hidden + gate1 * self.attention(self.norm1(hidden) * (1 + scale1) + shift1)
        return hidden + gate2 * self.mlp(self.norm2(hidden) * (1 + scale2) + shift2)


class Attention(nn.Module):
    """Causal multi-head attention `(B, T, width)` to the same; `heads * head_dim` need not equal `width`."""

    def __init__(self, width: int, heads: int, head_dim: int, dropout: float, inner_norm: bool):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm = nn.LayerNorm(width) if inner_norm else nn.Identity()
        self.qkv = nn.Linear(width, 3 * heads * head_dim, bias=False)
        self.out = nn.Sequential(nn.Linear(heads * head_dim, width), nn.Dropout(dropout))

    def forward(self, hidden: Tensor) -> Tensor:
        query, key, value = (
            self.qkv(self.norm(hidden)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        )
        dropout = self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True, dropout_p=dropout)
        return self.out(attended.transpose(1, 2).flatten(2))
