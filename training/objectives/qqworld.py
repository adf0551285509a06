"""QQWorld: every projected latent is pulled towards the Gaussian quantile of its rank."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from training.objectives.base import Objective, directions, project
from training.objectives.targets import Kind, by_rank, corrected_quantiles, quantiles

Reduction = Literal["sum", "mean"]
TARGETS: dict[Kind, Callable[[int], Tensor]] = {"plain": quantiles, "corrected": corrected_quantiles}


def targets(x: Tensor, history: Tensor | None = None, kind: Kind = "plain") -> Tensor:
    """The Gaussian quantile of each sample's rank in the pool, `(N, …)` for samples `x` `(N, …)` (eq:qq-pool).

    `history` `(M-N, …)` joins the ranking only. Ties are ranked in order of appearance, which separates them.
    """
    pool = x if history is None else torch.cat([x, history])
    return by_rank(pool, TARGETS[kind](len(pool)))[: len(x)]


def statistic(x: Tensor, history: Tensor | None = None, reduction: Reduction = "sum", kind: Kind = "plain") -> Tensor:
    """The QQ loss of each slice, `(…)` for samples `(N, …)` along the first axis (eq:qq-equiv, eq:queue-qq).

    Its gradient is 2 (x - q_rank) (eq:qq-grad), divided by N for the mean. A single sample is pulled to 0; a NaN makes
    its slice NaN.
    """
    squares = (x - targets(x, history, kind)).square()
    return squares.sum(0) if reduction == "sum" else squares.mean(0)


class QQWorld(Objective):
    """The QQ loss on random directions, per time step (eq:regularizer with eq:qq).

    `queue` keeps the latents of that many previous batches for ranking (eq:queue-qq). The paper writes a sum over the
    batch with weight 3.5, but does not say whether its code divides by N; `reduction` chooses. `targets` may be
    corrected for the bias of a finite pool.
    """

    unit_force = 1.0
    queue: Tensor
    pushed: Tensor

    def __init__(
        self,
        latent: int = 192,
        action_size: int = 10,
        weight: float = 3.5,
        queue: int = 0,
        directions: int = 1024,
        reduction: Reduction = "mean",
        targets: Kind = "plain",
    ):
        super().__init__(latent, action_size)
        self.weights = {"qq": weight}
        self.directions = directions
        self.reduction = reduction
        self.targets = targets
        self.length = queue
        # Latents, not projections: old batches are projected on the current directions.
        self.register_buffer("queue", torch.empty(0))
        self.register_buffer("pushed", torch.zeros((), dtype=torch.long))

    def terms(self, latents: Tensor, actions: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        units = directions(self.directions, latents.shape[-1], generator, latents)
        history = project(self.remembered(), units) if self.length and self.pushed else None
        value = statistic(project(latents, units), history, self.reduction, self.targets).mean()
        if self.training:
            self.push(latents)
        return {"qq": value}

    def remembered(self) -> Tensor:
        """The queue's latents as one batch `(T, M-N, D)`."""
        return self.queue[: int(self.pushed)].transpose(0, 1).flatten(1, 2)

    def push(self, latents: Tensor) -> None:
        """Put a batch `(T, B, D)` in the queue `(K, T, B, D)`, over the oldest one."""
        if not self.length:
            return
        if not len(self.queue):
            self.queue = latents.new_empty(self.length, *latents.shape)
        self.queue[int(self.pushed) % self.length] = latents.detach()
        self.pushed += 1

    def _load_from_state_dict(self, state_dict, prefix, *rest) -> None:
        self.queue = torch.empty_like(
            state_dict[prefix + "queue"], device=self.queue.device
        )  # it grows with the first batch
        super()._load_from_state_dict(state_dict, prefix, *rest)
