"""How often an agent that does not try succeeds: the floor under every success rate.

    python -m envs.floors --env pusht --pairs 200 --seed 0

Runs a random and a zero-action agent on evaluation pairs and prints the pairs' fingerprint.
"""

from dataclasses import dataclass

import numpy as np

import envs
from envs.base import Policy, Task
from envs.errors import BadInput, parse, run

BUDGET = 2 * envs.OFFSET


@dataclass(frozen=True)
class Floors:
    """How often a random and a zero-action agent succeed on evaluation pairs."""

    env: str
    """Task: two-room, pusht, reacher or cube."""
    pairs: int = 200
    """Pairs to try."""
    seed: int = 0
    """Seed of the pairs."""
    budget: int = BUDGET
    """Control steps an agent has."""


def hits(task: Task, pair: envs.Pair, policy: Policy, budget: int) -> bool:
    """Whether `policy` satisfies the pair's goal at any step of the budget."""
    state = pair.start
    for _ in range(budget):
        state = task.advance(state, policy(state))
        if task.success(state, pair.goal):
            return True
    return False


def main() -> int:
    settings = parse(Floors, __doc__)
    if settings.budget < 1:
        raise BadInput(f"--budget must be at least 1, got {settings.budget}")
    task = envs.make(settings.env)
    found = envs.pairs(task, settings.seed, settings.pairs)
    width = len(task.action_names)
    print(f"{task.name}: {len(found)} pairs of seed {settings.seed}, fingerprint {envs.fingerprint(found)}")
    apart = [task.distance(pair.start, pair.goal) for pair in found]
    print(f"distance from start to goal: median {np.median(apart):.3g} {task.unit}")
    for agent in ("random", "zero"):
        solved = 0
        for number, pair in enumerate(found):
            rng = np.random.default_rng([settings.seed, number])
            policy = (lambda _, rng=rng: rng.uniform(-1, 1, width)) if agent == "random" else lambda _: np.zeros(width)
            solved += hits(task, pair, policy, settings.budget)
        share = 100 * solved / len(found)
        print(f"{agent} agent: {solved} of {len(found)} within {settings.budget} steps ({share:.1f} %)")
    return 0


if __name__ == "__main__":
    run(main)
