"""A predictor without attention: a plain network of the last few latents and the action blocks that left them."""

import torch
from torch import Tensor, nn


class Markov(nn.Module):
    """Hidden states `(B, T, width)` of latents `(B, T, D)` and z-scored action blocks `(B, T, k*A)`.

    Each step sees itself and the `history - 1` steps before it, and what lies before the first is taken to have stood
    still: the first latent again, mean actions. Where one picture says all that matters a history of 1 predicts as well
    as attention over several, at a fraction of the cost; where things have speed, 2 shows it.
    """

    def __init__(self, latent: int, action_size: int, width: int, depth: int, dropout: float, history: int = 1):
        super().__init__()
        self.history = history
        self.latent = nn.Linear(history * latent, width)
        self.action = nn.Linear(history * action_size, width, bias=False)
        layers: list[nn.Module] = [nn.SiLU(), nn.Dropout(dropout)]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.SiLU(), nn.Dropout(dropout)]
        self.body = nn.Sequential(*layers)

    def forward(self, latents: Tensor, actions: Tensor, newest: bool = False) -> Tensor:
        """With `newest` only the last step's hidden state `(B, 1, width)`."""
        seen = self._recent(latents, latents[:, :1], newest)
        done = self._recent(actions, torch.zeros_like(actions[:, :1]), newest)
        return self.body(self.latent(seen) + self.action(done))

    def _recent(self, steps: Tensor, before: Tensor, newest: bool) -> Tensor:
        """Each step and those before it, newest first, `(B, T, history * W)` for steps `(B, T, W)`."""
        padded = torch.cat([before.expand(-1, self.history - 1, -1), steps], dim=1)
        first, last = (steps.shape[1] - 1 if newest else 0), steps.shape[1]
        lags = range(self.history - 1, -1, -1)
        return torch.cat([padded[:, lag + first : lag + last] for lag in lags], dim=2)
