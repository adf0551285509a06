"""The contract of a task: a gymnasium environment that is a pure function of its state vector.

A task writes eight methods (`start`, `advance`, `draw`, `portrait`, `success`, `distance`, `features`, `expert`) and
a few class attributes; everything a user calls is here. Because `advance` and `draw` take the state as an argument
and hide nothing between calls, `set_state(state()); step(a)` replays bit for bit, a planner can roll the real
simulator from any state, and any state has a picture without disturbing the episode.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import gymnasium
import numpy as np

from envs.dataset.layout import Look
from envs.errors import BadInput

LOOK_SIZE = {"fast": 64, "paper": 224}
MAX_SIZE = 1024

Policy = Callable[[np.ndarray], np.ndarray]
"""A data policy of one episode: state `(S,)` to action `(A,)`."""


@dataclass(frozen=True)
class FloorPlan:
    """Which numbers of a state are places on a floor that the picture shows from above."""

    side: float
    """What the picture's side measures in units of the state."""
    actor: tuple[int, int]
    """x and y of what the actions move."""
    velocity: tuple[int, ...] = ()
    """Its velocity, if it has one."""
    objects: tuple[tuple[int, int], ...] = ((0, 1),)
    """x and y of each object that a goal places."""
    angle: int | None = None
    """The angle of the last object."""


class Task(gymnasium.Env):
    """A goal-conditioned task; the observation is the picture a world model sees, uint8 `(size, size, 3)`.

    `look="fast"` is what a compact model sees (64 px unless `size` says otherwise), `look="paper"` the published look
    (224 px). `reset(options={"state": s, "goal": g})` starts from a given state towards a given goal; by default both
    are drawn from the task's start distribution.
    """

    name: ClassVar[str]
    """The task on the command line."""
    state_names: ClassVar[tuple[str, ...]]
    """One name for each number of the state vector."""
    action_names: ClassVar[tuple[str, ...]]
    """One name for each number of an action; every action lies in [-1, 1]."""
    control_hz: ClassVar[float]
    """Control steps per second of simulated time."""
    episode_steps: ClassVar[int] = 100
    """Control steps of a collected episode."""
    proprio: ClassVar[tuple[int, ...]]
    """Which numbers of the state the agent could measure on its own body."""
    movable: ClassVar[tuple[int, ...]]
    """Which numbers of the state locate the goal object."""
    moved_by: ClassVar[float]
    """How far (Euclidean, over `movable`) counts as having moved it."""
    rule: ClassVar[str]
    """When an episode has succeeded, in words."""
    unit: ClassVar[str]
    """The unit of `distance`."""
    note: ClassVar[str] = ""
    """What a person should know about the picture."""
    floor_plan: ClassVar[FloorPlan | None] = None
    """How the picture lies over the state, for a picture from above."""
    drag: ClassVar[tuple[tuple[float, float], ...] | None] = None
    """What a drag over the whole picture, right and down, adds to each of the `movable` numbers."""

    def __init__(self, size: int | None = None, look: Look = "fast", render_mode: str | None = None):
        if look not in LOOK_SIZE:
            raise BadInput(f"unknown look '{look}': use 'fast' or 'paper'")
        size = LOOK_SIZE[look] if size is None else size
        if not isinstance(size, int | np.integer) or not 8 <= size <= MAX_SIZE:
            raise BadInput(f"a picture cannot have side {size!r}: give a whole number of pixels from 8 to {MAX_SIZE}")
        self.size = int(size)
        self.look = look
        self.render_mode = render_mode
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": round(self.control_hz)}
        self.observation_space = gymnasium.spaces.Box(0, 255, (self.size, self.size, 3), np.uint8)
        self.action_space = gymnasium.spaces.Box(-1, 1, (len(self.action_names),), np.float32)
        self._state = np.zeros(len(self.state_names))
        self.goal = self._state.copy()

    # ---- what a task writes ------------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """A state `(S,)` from the task's start distribution."""
        raise NotImplementedError

    def advance(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        """The state one control step after `state` under `action`; depends on nothing else."""
        raise NotImplementedError

    def draw(self, state: np.ndarray) -> np.ndarray:
        """What a model sees in `state`: uint8 `(size, size, 3)`."""
        raise NotImplementedError

    def portrait(self, state: np.ndarray, size: int) -> np.ndarray:
        """What a person sees in `state`, in full quality: uint8 `(size, size, 3)`."""
        raise NotImplementedError

    def success(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """Whether `state` `(..., S)` satisfies `goal` `(..., S)`: bool `(...)`."""
        raise NotImplementedError

    def distance(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """How far `state` `(..., S)` is from `goal` `(..., S)`, in `unit`: float `(...)`."""
        raise NotImplementedError

    def features(self, state: np.ndarray) -> np.ndarray:
        """Where `state` `(..., S)` lies in a Euclidean space `(..., F)` in which near means alike.

        Angles are points on a circle, and 1 is about as much as the success rule can tell apart.
        """
        raise NotImplementedError

    def expert(self, rng: np.random.Generator) -> Policy:
        """The data policy of one episode; all its randomness comes from `rng`."""
        raise NotImplementedError

    def reward(self, state: np.ndarray, goal: np.ndarray) -> float:
        """1 when the goal is reached, else 0, unless the published task says otherwise."""
        return float(self.success(state, goal))

    def paths(self, state: np.ndarray, actions: np.ndarray) -> np.ndarray | None:
        """Where action sequences `(N, T, A)` lead about in the picture from `state`, as shares of it `(N, T+1, 2)`.

        None where nobody can say; a task with a `floor_plan` does not need it.
        """
        return None

    # ---- what everyone calls -----------------------------------------------------------------------------------

    def state(self) -> np.ndarray:
        """The whole state as one vector `(S,)`; nothing else influences what happens next."""
        return self._state.copy()

    def set_state(self, state: Any) -> None:
        """Put the simulator into `state` `(S,)`."""
        self._state = self._checked(state, self.state_names, "state")

    def set_goal(self, goal: Any) -> None:
        """Aim at the state `goal` `(S,)` from now on."""
        self.goal = self._checked(goal, self.state_names, "goal")

    def moved(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Whether the goal object moved between two states `(..., S)`: bool `(...)`."""
        change = np.asarray(after)[..., self.movable] - np.asarray(before)[..., self.movable]
        return np.linalg.norm(change, axis=-1) > self.moved_by

    def episode(self, rng: np.random.Generator, steps: int, stray: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """One episode of the data policy: states `(steps + 1, S)` and the actions `(steps, A)` between them.

        It strays for about the share `stray` of the time (`straying`).
        """
        state = self.start(rng)
        policy = self.expert(rng)
        if stray:
            policy = straying(policy, rng, stray, len(self.action_names))
        states, actions = [state], []
        for _ in range(steps):
            actions.append(policy(state))
            state = self.advance(state, actions[-1])
            states.append(state)
        return np.stack(states), np.stack(actions)

    def picture(self, size: int = 480, state: np.ndarray | None = None) -> np.ndarray:
        """The current state (or `state`) for people, in full quality: uint8 `(size, size, 3)`."""
        if not 8 <= size <= MAX_SIZE:
            raise BadInput(f"a picture cannot have side {size!r}: give a whole number of pixels from 8 to {MAX_SIZE}")
        return self.portrait(self._state if state is None else state, size)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode; `options` may hold a `state` and a `goal`."""
        super().reset(seed=seed)
        options = options or {}
        if unknown := sorted(set(options) - {"state", "goal"}):
            raise BadInput(f"reset does not know the option '{unknown[0]}': it takes 'state' and 'goal'")
        start, goal = self.start(self.np_random), self.start(self.np_random)
        self.set_state(options.get("state", start))
        self.set_goal(options.get("goal", goal))
        return self.draw(self._state), self._info()

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One control step; `terminated` says that the goal is reached, time limits are the caller's."""
        action = self._checked(action, self.action_names, "action")
        if np.abs(action).max() > 1 + 1e-6:
            raise BadInput(
                f"an action of {self.name} lies in [-1, 1] on every axis, got {action.tolist()}: clip it first"
            )
        self._state = self.advance(self._state, np.clip(action, -1, 1))
        info = self._info()
        return self.draw(self._state), self.reward(self._state, self.goal), info["success"], False, info

    def render(self) -> np.ndarray:
        """The picture for people, as gymnasium's `rgb_array`."""
        return self.picture()

    def _info(self) -> dict[str, Any]:
        return {
            "state": self.state(),
            "goal": self.goal.copy(),
            "success": bool(self.success(self._state, self.goal)),
            "distance": float(self.distance(self._state, self.goal)),
        }

    def _checked(self, values: Any, names: tuple[str, ...], what: str) -> np.ndarray:
        try:
            vector = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise BadInput(f"a {what} of {self.name} is {len(names)} numbers, got {values!r}") from None
        if vector.shape != (len(names),):
            raise BadInput(
                f"a {what} of {self.name} has {len(names)} numbers ({', '.join(names)}), got shape {vector.shape}"
            )
        if not np.isfinite(vector).all():
            raise BadInput(f"a {what} of {self.name} must be finite, got {vector.tolist()}")
        return vector


def straying(policy: Policy, rng: np.random.Generator, share: float, action_dim: int) -> Policy:
    """`policy` with spells of aimless actions: one random direction each, with noise, for 2 to 8 steps.

    A policy that always knows what it does never shows what happens otherwise, and a planner will ask.
    """
    start = min(1.0, share / (5 * max(1 - share, 1e-3)))  # spells last 5 steps on average
    left, direction = 0, np.zeros(action_dim)

    def act(state: np.ndarray) -> np.ndarray:
        nonlocal left, direction
        if left == 0 and rng.random() < start:
            left, direction = int(rng.integers(2, 9)), rng.uniform(-1, 1, action_dim) * rng.uniform(0.1, 0.7)
        if left == 0:
            return policy(state)
        left -= 1
        return np.clip(direction + rng.normal(0, 0.2, action_dim), -1, 1).astype(np.float32)

    return act


def shrink(picture: np.ndarray, size: int) -> np.ndarray:
    """A picture scaled to `size` pixels a side, averaging over area when it gets smaller."""
    if picture.shape[0] == size:
        return picture
    mode = cv2.INTER_AREA if picture.shape[0] > size else cv2.INTER_LINEAR
    return cv2.resize(picture, (size, size), interpolation=mode)
