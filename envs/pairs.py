"""Start and goal states for evaluation, from fresh episodes that no dataset contains."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from envs.base import Task
from envs.errors import BadInput

OFFSET = 25
MAX_EPISODES_PER_PAIR = 50

_PAIR_SPACE = (
    0x9A125  # the first word of every pair seed; collected episodes use another, so no seed can make them meet
)


class Pair(NamedTuple):
    """Where an evaluation episode starts and what it must reach."""

    start: np.ndarray
    goal: np.ndarray
    episode: int
    step: int


def pairs(env: str | Task, seed: int, n: int, offset: int = OFFSET) -> list[Pair]:
    """`n` pairs, one an episode: the goal is the state `offset` steps after the start in an episode of the data policy.

    Starts that already satisfy their goal are left out. The list depends on task, seed and offset only, and a longer
    list begins with the shorter one.
    """
    import envs

    task = envs.make(env) if isinstance(env, str) else env
    if n < 1 or seed < 0 or offset < 1:
        raise BadInput(f"pairs need n >= 1, seed >= 0 and offset >= 1, got n={n}, seed={seed}, offset={offset}")
    found: list[Pair] = []
    for episode in range(n * MAX_EPISODES_PER_PAIR):
        rng = np.random.default_rng([_PAIR_SPACE, seed, offset, episode])
        states, _ = task.episode(rng, max(task.episode_steps, 2 * offset))
        unsolved = np.flatnonzero(~task.success(states[:-offset], states[offset:]))
        if len(unsolved):
            step = int(rng.choice(unsolved))
            found.append(Pair(states[step], states[step + offset], episode, step))
            if len(found) == n:
                return found
    raise BadInput(
        f"the data policy of {task.name} moves too little: {len(found)} unsolved pairs in {episode + 1} episodes"
    )


def fingerprint(found: Sequence[Pair]) -> str:
    """Twelve hexadecimal digits that name a list of pairs: equal lists, equal digits."""
    digest = hashlib.sha256()
    for pair in found:
        digest.update(np.concatenate([pair.start, pair.goal]).astype("<f8").tobytes())
    return digest.hexdigest()[:12]
