"""What `--goal` means: the pair's goal, a random state, a state in numbers, or a picture."""

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from envs import BadInput, Pair, Task

GOAL_SPACE, SEARCH_SPACE = 0x60A1, 0x60A2  # first words of the seeds
GUESSES, LINEAGES, CHILDREN, GENERATIONS = 600, 64, 4, 20
BLURRED, SHARP = 8.0, 24.0
SEARCHABLE = 8
"""Numbers of a state that a search by pictures can find."""
FOUND = 0.2
"""Mean squared difference, in grey levels, of pictures that are as good as equal."""


@dataclass(frozen=True)
class Goals:
    """Gives each episode its goal; `picture` is what the agent sees instead of the goal state's own picture, if set."""

    source: str
    picture: np.ndarray | None = None
    """uint8 `(size, size, 3)`"""
    pictured: np.ndarray | None = None
    """A state `(S,)` that looks like `picture`, by which success is measured."""

    def __call__(self, task: Task, pair: Pair, seed: int, number: int) -> np.ndarray:
        """The goal state of an episode."""
        if self.source == "pair":
            return pair.goal
        if self.source == "random":
            return random_goal(task, seed, number)
        return pair.goal if self.pictured is None else self.pictured


def random_goal(task: Task, seed: int, number: int, attempt: int = 0) -> np.ndarray:
    """A goal state `(S,)` from the task's starts; each further `attempt` is another one."""
    return task.start(np.random.default_rng([GOAL_SPACE, seed, number, attempt]))


def parse_goal(source: str, task: Task) -> Goals:
    """What was written after `--goal`: pair, random, a picture's file, or all numbers of a state with commas."""
    if source in ("pair", "random"):
        return Goals(source)
    try:
        numbers = [float(number) for number in source.strip("[]()").split(",")]
    except ValueError:
        picture = _read(Path(source), task)
        return Goals("picture", picture, state_of(task, picture))
    task.set_goal(numbers)  # checks them
    return Goals("state", pictured=task.goal.copy())


def state_of(task: Task, picture: np.ndarray) -> np.ndarray:
    """A state `(S,)` whose picture is like `picture` uint8 `(size, size, 3)`, found by trying.

    Random starts first; then the best of them have offspring with small changes, ever smaller, and with some numbers
    taken from other starts; the best of each family goes on, and half of the families die out now and then. A state
    of many numbers leaves it at the first part: it cannot be searched like this.
    """
    rng = np.random.default_rng(SEARCH_SPACE)

    def misfits(states: np.ndarray, sharpness: float) -> np.ndarray:
        wanted = _blurred(picture, sharpness)
        return np.array([np.square(_blurred(task.draw(state), sharpness) - wanted).mean() for state in states])

    searchable = len(task.state_names) <= SEARCHABLE
    starts = np.stack([task.start(rng) for _ in range(GUESSES if searchable else GUESSES // 4)])
    low, high, spread = starts.min(axis=0), starts.max(axis=0), starts.std(axis=0)
    best = starts[np.argsort(misfits(starts, BLURRED), kind="stable")[:LINEAGES]]
    for generation in range(GENERATIONS if searchable else 0):
        parents = np.repeat(best[:, None], CHILDREN, axis=1)
        scale = spread * 0.3 * 0.05 ** (generation / GENERATIONS)
        changed = np.clip(parents + scale * rng.standard_normal(parents.shape), low, high)
        crossed = np.where(rng.random(parents.shape) < 0.4, rng.choice(starts, parents.shape[:2]), parents)
        families = np.concatenate([best[:, None], changed, crossed], axis=1)
        errors = misfits(families.reshape(-1, len(spread)), BLURRED + (SHARP - BLURRED) * generation / GENERATIONS)
        errors = errors.reshape(len(best), -1)
        order = np.argsort(errors.min(axis=1), kind="stable")
        best = families[order, errors.argmin(axis=1)[order]]
        if generation % 5 == 4:
            best = best[: len(best) // 2]
        if misfits(best[:1], SHARP)[0] < FOUND:
            break
    return best[misfits(best, SHARP).argmin()]


def _blurred(picture: np.ndarray, sharpness: float) -> np.ndarray:
    """Blurred, so that an object that is nearly in its place is nearly right."""
    return cv2.GaussianBlur(picture.astype(np.float32), (0, 0), picture.shape[0] / sharpness)


def _read(path: Path, task: Task) -> np.ndarray:
    """A picture's middle square at the size that the task draws."""
    if not path.is_file():
        raise BadInput(
            f"--goal is pair, random, a picture or the {len(task.state_names)} numbers of a state "
            f"({', '.join(task.state_names[:7])}{', ...' if len(task.state_names) > 7 else ''}), not '{path}'"
        )
    picture = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if picture is None:
        raise BadInput(f"{path} is not a picture that can be read: use a PNG or a JPEG")
    side = min(picture.shape[:2])
    top, left = (picture.shape[0] - side) // 2, (picture.shape[1] - side) // 2
    square = cv2.cvtColor(picture[top : top + side, left : left + side], cv2.COLOR_BGR2RGB)
    mode = cv2.INTER_AREA if side > task.size else cv2.INTER_LINEAR
    return cv2.resize(square, (task.size, task.size), interpolation=mode)
