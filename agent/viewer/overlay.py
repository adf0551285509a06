"""Where actions and states lie in the picture, as the task declares it, and what a drag means.

No hand can place the goal of a task without a floor plan.
"""

import functools

import numpy as np

from envs import Task

GRIP = 0.14
"""A press this near to an object, as a share of the picture, takes hold of it; further off, the object jumps there."""


def paths(task: Task, state: np.ndarray, actions: np.ndarray) -> np.ndarray | None:
    """Where action sequences `(N, T, A)` lead in the picture, as shares of it `(N, T+1, 2)`; None if nobody can say.

    On a floor plan it is where they take the actor if nothing is in its way.
    """
    plan = task.floor_plan
    if plan is None:
        return task.paths(state, actions)
    numbers = [*plan.actor, *plan.velocity]
    carry, push = _response(task)
    body = np.tile(state[numbers], (len(actions), 1))
    points = [body[:, :2]]
    for action in np.moveaxis(actions.astype(np.float64), 1, 0):
        body = body @ carry.T + action @ push.T
        points.append(body[:, :2])
    return np.stack(points, axis=1) / plan.side


@functools.cache
def _response(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """How the actor's numbers follow from themselves `(n, n)` and from an action `(n, A)`: probed, as it is linear."""
    plan = task.floor_plan
    assert plan is not None
    numbers, size = [*plan.actor, *plan.velocity], len(task.action_names)
    state = task.start(np.random.default_rng(0))
    rest = task.advance(state, np.zeros(size))[numbers]
    carry, push = np.empty((len(numbers), len(numbers))), np.empty((len(numbers), size))
    for column, number in enumerate(numbers):
        nudged = state.copy()
        nudged[number] += 1
        carry[:, column] = task.advance(nudged, np.zeros(size))[numbers] - rest
    for column in range(size):
        push[:, column] = task.advance(state, np.eye(size)[column])[numbers] - rest
    return carry, push


def grab(task: Task, state: np.ndarray, point: np.ndarray) -> tuple[int, np.ndarray] | None:
    """Which object a press at `point` (shares of the picture) takes hold of, and its offset from there `(2,)`."""
    plan = task.floor_plan
    if plan is None:
        return None
    offsets = [state[list(place)] / plan.side - point for place in plan.objects]
    nearest = int(np.argmin([np.linalg.norm(offset) for offset in offsets]))
    held = np.linalg.norm(offsets[nearest]) < GRIP
    return nearest, offsets[nearest] if held else np.zeros(2)


def placed(task: Task, state: np.ndarray, index: int, point: np.ndarray) -> np.ndarray:
    """`state` with the object `index` moved to `point` (shares of the picture), and at rest where it can be."""
    plan = task.floor_plan
    assert plan is not None
    moved = state.copy()
    moved[list(plan.objects[index])] = np.clip(point, 0.04, 0.96) * plan.side
    moved[list(plan.velocity)] = 0
    return task.advance(moved, np.zeros(len(task.action_names)))


def turned(task: Task, state: np.ndarray, radians: float) -> np.ndarray | None:
    """`state` with its last object turned; None where nothing turns."""
    plan = task.floor_plan
    if plan is None or plan.angle is None:
        return None
    moved = state.copy()
    moved[plan.angle] = (moved[plan.angle] + radians) % (2 * np.pi)
    return moved


def displacement(task: Task, state: np.ndarray, drag: np.ndarray) -> np.ndarray | None:
    """What a `drag` (shares of the picture) adds to the task's `movable` `(M,)`; None where a drag means nothing."""
    if task.drag is None:
        return None
    push = np.array(task.drag) @ drag
    if plan := task.floor_plan:  # nothing is pushed off the floor
        here = state[list(task.movable)]
        push = np.clip(here + push, 0.06 * plan.side, 0.94 * plan.side) - here
    return push
