"""Start and goal states for evaluation, from fresh episodes that no dataset contains."""

import hashlib
import os
import sys
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
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


def remembered(env: str, seed: int, n: int, offset: int = OFFSET) -> list[Pair]:
    """The same as `pairs`, kept on disk for the next time: Cube's take minutes to find.

    The file's name says what they depend on: the arguments, the code of the tasks and the libraries that simulate.
    """
    code = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    libraries = [metadata.version(name) for name in ("numpy", "pymunk", "mujoco", "dm-control", "ogbench")]
    digest = hashlib.sha256(repr((env, seed, n, offset, libraries, sys.platform)).encode() + code).hexdigest()[:16]
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    file = root / "qqworld" / "pairs" / f"{env}-{seed}-{n}-{offset}-{digest}.npz"
    with suppress(OSError, KeyError, ValueError, zipfile.BadZipFile):  # not there yet, or damaged
        kept = np.load(file)
        columns = (kept["start"], kept["goal"], kept["episode"].tolist(), kept["step"].tolist())
        return [Pair(*pair) for pair in zip(*columns, strict=True)]
    found = pairs(env, seed, n, offset)
    with suppress(OSError):  # a disk that cannot be written to costs time, nothing else
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}.npz")
        start, goal, episode, step = map(np.array, zip(*found, strict=True))
        np.savez(partial, start=start, goal=goal, episode=episode, step=step)
        os.replace(partial, file)
    return found


def fingerprint(found: Sequence[Pair]) -> str:
    """Twelve hexadecimal digits that name a list of pairs: equal lists, equal digits."""
    digest = hashlib.sha256()
    for pair in found:
        digest.update(np.concatenate([pair.start, pair.goal]).astype("<f8").tobytes())
    return digest.hexdigest()[:12]
