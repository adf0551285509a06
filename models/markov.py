"""A predictor without memory: a plain network of one latent and the action block that leaves it."""

from torch import Tensor, nn


class Markov(nn.Module):
    """Hidden states `(B, T, width)` of latents `(B, T, D)` and action blocks `(B, T, k*A)`, each step for itself.

    Where one picture says all that matters it predicts as well as attention over several, at a fraction of the cost.
    """

    def __init__(self, latent: int, action_size: int, width: int, depth: int, dropout: float):
        super().__init__()
        self.latent = nn.Linear(latent, width)
        self.action = nn.Linear(action_size, width, bias=False)
        layers: list[nn.Module] = [nn.SiLU(), nn.Dropout(dropout)]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.SiLU(), nn.Dropout(dropout)]
        self.body = nn.Sequential(*layers)

    def forward(self, latents: Tensor, actions: Tensor) -> Tensor:
        return self.body(self.latent(latents) + self.action(actions))
