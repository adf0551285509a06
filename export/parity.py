"""Does the file compute what torch computes? Latents within a tolerance, and the same elites in the same order."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch

import envs
from agent.planning import make
from agent.planning.base import Problem
from agent.world_models import base
from agent.world_models.onnx import OnnxWorldModel
from models import Proposals, WorldModel

TOLERANCE = {"float32": 1e-4, "float16": 5e-2}
BATCHES = (1, 2, 300)
MAX_PICTURES = 32
CEM = {"candidates": 64, "elites": 16, "iterations": 4, "keep": 0}


@dataclass(frozen=True)
class Parity:
    """The largest differences of latents between file and torch, and whether a search finds the same elites."""

    errors: dict[str, float]
    """By entry point, kind of input and batch."""
    same_elites: bool
    tolerance: float
    notes: list[str] = field(default_factory=list)

    @property
    def worst(self) -> float:
        return max(self.errors.values())

    @property
    def passed(self) -> bool:
        """Float16 may order near ties differently; float32 may not."""
        return self.worst <= self.tolerance and (self.same_elites or self.tolerance > TOLERANCE["float32"])

    def lines(self) -> list[str]:
        """The report, a line for each comparison."""
        lines = [f"{name}: {error:.1e}" for name, error in self.errors.items()]
        elites = "same elites in the same order" if self.same_elites else "other elites"
        return [*lines, f"seeded CEM: {elites}", *self.notes]


class TorchWorldModel:
    """The torch network behind the agent's `WorldModel` contract; everything but the functions is the file's."""

    def __init__(self, network: WorldModel, like: OnnxWorldModel, proposals: Proposals | None = None):
        self.network = network
        self.proposals = proposals
        self._like = like

    def __getattr__(self, name: str) -> Any:
        return getattr(self._like, name)

    @torch.no_grad()
    def encode(self, observations: np.ndarray) -> np.ndarray:
        return self.network.encode(torch.from_numpy(observations)).numpy()

    @torch.no_grad()
    def rollout(self, context: np.ndarray, past_actions: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return self.network.rollout(*map(_tensor, (context, past_actions, actions))).numpy()

    @torch.no_grad()
    def propose(
        self, latents: np.ndarray, goals: np.ndarray, blocks_left: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        assert self.proposals is not None
        weights, means, spreads = self.proposals.propose(*map(_tensor, (latents, goals, blocks_left)))
        return weights.numpy(), means.numpy(), spreads.numpy()


def _tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, np.float32))


def compare(
    network: WorldModel,
    file: OnnxWorldModel,
    tolerance: float,
    batches: Sequence[int] = BATCHES,
    seed: int = 0,
    proposals: Proposals | None = None,
) -> Parity:
    """Compare the file with the network it was made from, on random and real pictures and random actions."""
    rng = np.random.default_rng(seed)
    reference = TorchWorldModel(network.eval(), file, proposals)
    size, block = file.image_size, file.action_dim * file.action_block
    errors: dict[str, float] = {}
    notes: list[str] = []
    for batch in batches:
        frames = rng.integers(0, 256, (min(batch, MAX_PICTURES), size, size, 3), dtype=np.uint8)
        errors[f"encode, {len(frames)} random pictures"] = _share(reference.encode(frames), file.encode(frames))
    try:
        real = real_pictures(file, 8)
        errors[f"encode, {len(real)} pictures of {file.task}"] = _error(reference.encode(real), file.encode(real))
    except envs.BadInput as error:
        notes.append(f"no pictures of {file.task} were compared: {error}")
        real = frames[:2]
    latents = reference.encode(real)
    for length in range(1, file.history + 1):
        for batch in batches:
            for contexts in {1, batch}:
                context = latents[rng.integers(len(latents), size=(contexts, length))]
                shapes = (contexts, length - 1, block), (batch, file.horizon, block)
                past, actions = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes)
                inputs = f"from {length}, {batch} candidates, {contexts} contexts"
                expected = reference.rollout(context, past, actions)
                errors[f"rollout {inputs}"] = _error(expected, file.rollout(context, past, actions))
                errors[f"one block {inputs}"] = _error(expected[:, :1], file.rollout(context, past, actions[:, :1]))
    for batch in batches if proposals is not None else ():
        start, goal = latents[rng.integers(len(latents), size=(2, batch))]
        blocks_left = rng.uniform(1, 20, (batch, 1)).astype(np.float32)
        both = (model.propose(start, goal, blocks_left) for model in (reference, file))
        errors[f"propose, {batch} latents"] = max(map(_error, *both))
    return Parity(errors, _same_elites(reference, file, latents, seed), tolerance, notes)


def real_pictures(file: OnnxWorldModel, count: int) -> np.ndarray:
    """Pictures uint8 `(count, size, size, 3)` of states that the task's data policy visits."""
    task = envs.make(file.task, size=file.image_size, look=file.look)
    found = envs.pairs(task, seed=0, n=(count + 1) // 2)
    return np.stack([task.draw(state) for pair in found for state in (pair.start, pair.goal)][:count])


def _same_elites(reference: TorchWorldModel, file: OnnxWorldModel, latents: np.ndarray, seed: int) -> bool:
    """Whether a search with either finds the same elites in the same order, after every iteration's selection."""
    planner = make("cem", horizon=file.horizon, **CEM)
    nothing = np.empty((0, file.action_dim * file.action_block), np.float32)
    found = []
    for model in (reference, file):
        problem = Problem(latents[:1], nothing, latents[-1], np.random.default_rng(seed))
        found.append(planner(cast(base.WorldModel, model), [problem])[0].elites)
    return np.array_equal(found[0], found[1])


def _error(expected: np.ndarray, actual: np.ndarray) -> float:
    return float(np.abs(expected - actual).max())


def _share(expected: np.ndarray, actual: np.ndarray) -> float:
    """The largest difference, as a share of the largest number where that is above 1: noise looks like no task."""
    return _error(expected, actual) / max(1.0, float(np.abs(expected).max()))
