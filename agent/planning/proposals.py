"""Plans from a model's proposals, carried out as they are or as the start of a search."""

import dataclasses
import math
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from agent.planning.base import Plan, Problem
from agent.planning.cem import CEM
from agent.planning.rollouts import Cost, Found, RolloutPlanner, Search
from agent.planning.search_space import SearchSpace, box
from agent.world_models.base import WorldModel


@dataclass(frozen=True)
class ProposingPlanner(RolloutPlanner):
    """A planner that is given the model's proposals as guesses: the plain ones first, then samples.

    Nobody says how far away a goal is, so several times of arrival are tried, between one block and `reach`. If only
    the end of a plan counted, arriving later would be as good as now, and every new plan could put it off.
    """

    cost: Cost = "min"
    reach: int = 10
    """Blocks until the goal is reached, at most; the model has learned from goals up to some distance."""
    arrivals: int = 5
    """Times of arrival that are tried: 1 is the reach alone."""
    samples: int = 0
    """Plans that are drawn at random from the proposals besides."""

    needs_proposals: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._at_least(1, "reach", "arrivals")
        self._at_least(0, "samples")

    def times(self) -> np.ndarray:
        """The times of arrival in blocks, close together where they are short."""
        tried = np.geomspace(1, self.reach, self.arrivals) if self.arrivals > 1 else [self.reach]
        return np.unique(np.rint(tried))

    def __call__(self, model: WorldModel, problems: Sequence[Problem], deadline: float | None = None) -> list[Plan]:
        """Where the samples and a search have never fitted in that time, the plain proposals are all there is."""
        started = time.perf_counter()
        shortest = {} if deadline is None else _shortest.setdefault(model, {})
        size = self, len(problems)
        hurried = deadline is not None and started + shortest.get(size, 0.0) > deadline
        guesses = roll(model, problems, self.horizon, self.times(), 0 if hurried else self.samples)
        ms = 1e3 * (time.perf_counter() - started)
        guessed = [dataclasses.replace(p, guesses=plans) for p, plans in zip(problems, guesses, strict=True)]
        plans = super().__call__(model, guessed, -math.inf if hurried else deadline)
        if not hurried:
            iterations = max(plan.iterations for plan in plans)
            least_s = (ms + plans[0].ms["total"] / max(iterations, 1)) / 1e3  # with one iteration
            shortest[size] = min(shortest.get(size, math.inf), least_s)
        return [
            dataclasses.replace(plan, ms={**plan.ms, "propose": ms, "total": plan.ms["total"] + ms}) for plan in plans
        ]


@dataclass(frozen=True)
class Propose(ProposingPlanner):
    """Of the proposals for several times of arrival, the one that the model predicts to cost least."""

    every_step: bool = False
    """Plan at every step of the task, not only after `replan` blocks."""

    name: ClassVar[str] = "propose"

    def search(self, space: SearchSpace, problem: Problem, late: Callable[[], bool]) -> Search:
        assert problem.guesses is not None
        plans = np.stack([space.start(plan) for plan in problem.guesses])
        return Found(plans, plans, proposals=len(plans))
        yield  # a search is a generator, though this one tries no candidates


@dataclass(frozen=True)
class Guided(ProposingPlanner, CEM):
    """A few iterations of CEM around the proposals.

    The search's answer is carried out only if the model predicts that it costs less than every plain proposal, so by
    the model's own measure a guided plan is never worse than a proposed one.
    """

    samples: int = 16
    candidates: int = 100
    iterations: int = 3
    std: float = 0.5
    std_warm: float = 0.5
    momentum: float = 0.0
    answer: Literal["mean", "best"] = "best"

    name: ClassVar[str] = "guided"

    def search(self, space: SearchSpace, problem: Problem, late: Callable[[], bool]) -> Search:
        assert problem.guesses is not None
        plain = np.stack([space.start(plan) for plan in problem.guesses[: len(self.times())]])
        if late():
            return Found(plain, plain, proposals=len(plain))
        found = yield from CEM.search(self, space, problem, late)
        return found._replace(answers=np.concatenate([plain, found.answers]), proposals=len(plain))


def roll(model: WorldModel, problems: Sequence[Problem], horizon: int, times: np.ndarray, samples: int) -> np.ndarray:
    """Plans `(P, G, H, k*A)` for each of P problems, G = len(times) + samples, in the task's units.

    The first go to the likeliest mean at every block, one plan for each time of arrival; the others are drawn.
    """
    count = len(times) + samples
    boxes = np.array([box(model, horizon, problem.committed) for problem in problems])  # (P, 2, H, k*A)
    size = boxes.shape[-1]
    shares = np.stack([problem.rng.random((samples, horizon)) for problem in problems])
    noise = np.stack([problem.rng.standard_normal((samples, horizon, size)) for problem in problems])
    goals, seen, done = (
        np.repeat(np.stack([getattr(problem, part) for problem in problems]), count, axis=0)
        for part in ("goal", "context", "past_actions")
    )
    left = np.tile(np.resize(times, count), len(problems))[:, None]

    plans = np.empty((len(problems), count, horizon, size), np.float32)
    for block in range(horizon):
        if block:
            taken = plans[:, :, block - 1].reshape(len(seen), 1, -1)
            following = model.rollout(seen, done, taken)
            seen = np.concatenate([seen, following], axis=1)[:, -model.history :]
            done = np.concatenate([done, taken], axis=1)
            done = done[:, done.shape[1] + 1 - seen.shape[1] :]  # the blocks between what is still seen
        mixtures = model.propose(seen[:, -1], goals, np.maximum(left - block, 1))
        weights, means, spreads = (part.reshape(len(problems), count, *part.shape[1:]) for part in mixtures)
        blocks = pick(weights, means, spreads, shares[..., block], noise[:, :, block])
        plans[:, :, block] = np.clip(blocks, boxes[:, :1, block], boxes[:, 1:, block])
    return plans


def pick(
    weights: np.ndarray, means: np.ndarray, spreads: np.ndarray, shares: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """One block `(P, G, k*A)` from each mixture `(P, G, M, ...)`.

    The last S of G are drawn: a share in [0, 1) `(P, S)` chooses the component, noise `(P, S, k*A)` the place in it.
    The others are the likeliest component's mean.
    """
    chosen = weights.argmax(axis=-1)
    plain = chosen.shape[1] - shares.shape[1]
    chosen[:, plain:] = (weights.cumsum(axis=-1)[:, plain:] < shares[..., None]).sum(axis=-1)
    chosen = np.minimum(chosen, weights.shape[-1] - 1)  # shares may add up to a little less than 1
    blocks, spread = (np.take_along_axis(part, chosen[..., None, None], axis=2)[:, :, 0] for part in (means, spreads))
    blocks[:, plain:] += spread[:, plain:] * noise
    return blocks


_shortest: weakref.WeakKeyDictionary[WorldModel, dict[tuple[ProposingPlanner, int], float]] = (
    weakref.WeakKeyDictionary()
)  # a cache: the least seconds that a plan with one iteration has taken, by planner and number of problems
