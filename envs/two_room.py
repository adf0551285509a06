"""Two-Room: a disc walks between two rooms joined by one door.

State 2: agent x, y in pixels of a 224 x 224 world, x right, y down. Action 2: dx, dy in [-1, 1], each worth 5 px a
step. Control rate 10 steps a second (the published task has no clock). Start: uniform over the free floor. Success:
the agent is less than 16 px from the goal.

One declared difference from the published task: a move is swept, so nobody passes through a wall. An agent meets the
wall where its path does (the published test looks at the end point only), and in the doorway it slides along the
door's edge.
"""

import functools

import numpy as np

from envs.base import FloorPlan, Policy, Task, shrink

WORLD = 224
BORDER, RADIUS, SPEED = 14, 7.0, 5.0
LOW, HIGH = BORDER + RADIUS, WORLD - BORDER - RADIUS
WALL, WALL_HALF = 112, 5
WALL_LEFT, WALL_RIGHT = WALL - WALL_HALF - RADIUS, WALL + WALL_HALF + RADIUS  # where the agent's centre meets the wall
DOOR, DOOR_HALF, DOOR_SLACK = 49, 14, 1.75
DOOR_TOP, DOOR_BOTTOM = DOOR - DOOR_HALF - DOOR_SLACK, DOOR + DOOR_HALF + DOOR_SLACK
AGENT_RGB = np.array([255, 0, 0], np.float32)
SAMPLING = (14.0, 209.0)


class TwoRoom(Task):
    """A disc walks between two rooms joined by one door."""

    name = "two-room"
    state_names = ("agent_x", "agent_y")
    action_names = ("dx", "dy")
    control_hz = 10.0
    proprio = (0, 1)
    movable = (0, 1)
    moved_by = 16.0
    rule = "agent less than 16 px from the goal"
    unit = "px"
    floor_plan = FloorPlan(WORLD, (0, 1))
    drag = ((WORLD, 0), (0, WORLD))

    def start(self, rng: np.random.Generator) -> np.ndarray:
        while True:
            x, y = rng.uniform(*SAMPLING, 2)
            if not WALL_LEFT <= x <= WALL_RIGHT:
                return np.array([x, y])

    def advance(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        x, y = float(state[0]), float(state[1])
        to_x = min(max(x + SPEED * float(action[0]), LOW), HIGH)
        to_y = min(max(y + SPEED * float(action[1]), LOW), HIGH)
        return np.array(_sweep(x, y, to_x, to_y))

    def draw(self, state: np.ndarray) -> np.ndarray:
        return shrink(_render(state, WORLD), self.size) if self.look == "paper" else _render(state, self.size)

    def portrait(self, state: np.ndarray, size: int) -> np.ndarray:
        return _render(state, size)

    def success(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return self.distance(state, goal) < 16

    def distance(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return np.linalg.norm(np.asarray(state) - np.asarray(goal), axis=-1)

    def features(self, state: np.ndarray) -> np.ndarray:
        return np.asarray(state) / 16

    def reward(self, state: np.ndarray, goal: np.ndarray) -> float:
        return 0.0  # as published

    def expert(self, rng: np.random.Generator) -> Policy:
        """Walk to a random goal, through the door when it lies in the other room, then to the next one.

        The Gaussian noise on the action is drawn once an episode from 0 to 1.5: the published 2.0 lets a random agent
        solve a quarter of all pairs.
        """
        noise = rng.uniform(0.0, 1.5)
        goal = self.start(rng)

        def policy(state: np.ndarray) -> np.ndarray:
            nonlocal goal
            while np.linalg.norm(goal - state) < 16:
                goal = self.start(rng)
            target = goal
            if (state[0] < WALL) != (goal[0] < WALL):
                door = np.array([WALL, DOOR])
                beyond = np.array([WALL + np.sign(goal[0] - WALL) * 14, DOOR])
                target = door if np.linalg.norm(door - state) >= 10.5 else beyond
            direction = target - state
            direction = direction / max(np.linalg.norm(direction), 1e-6)
            return np.clip(direction + rng.normal(0, noise, 2), -1, 1).astype(np.float32)

        return policy


def _sweep(x: float, y: float, to_x: float, to_y: float) -> tuple[float, float]:
    """Where a move from (x, y) towards (to_x, to_y) ends."""
    inside = WALL_LEFT < x < WALL_RIGHT
    side = WALL_LEFT if (to_x if inside else x) < WALL else WALL_RIGHT  # the face of the wall that the path could cross
    crosses = (x <= side) != (to_x <= side)
    if crosses:
        y_crossing = y + (to_y - y) * (side - x) / (to_x - x)
        in_door = DOOR_TOP <= y_crossing <= DOOR_BOTTOM
        if not inside and not in_door:
            return (WALL_LEFT - 0.5 if side == WALL_LEFT else WALL_RIGHT + 0.5), to_y
        if inside and in_door:
            return to_x, to_y
    if inside or crosses:
        to_y = min(max(to_y, DOOR_TOP), DOOR_BOTTOM)
    return to_x, to_y


@functools.cache
def _background(size: int) -> np.ndarray:
    """The rooms without the agent as float32 `(size, size, 3)`."""
    picture = np.full((WORLD, WORLD, 3), 255, np.uint8)
    picture[:, WALL - WALL_HALF : WALL + WALL_HALF + 1] = 0
    picture[DOOR - DOOR_HALF : DOOR + DOOR_HALF + 1, WALL - WALL_HALF : WALL + WALL_HALF + 1] = 255
    for line in (slice(BORDER - 4, BORDER), slice(WORLD - BORDER, WORLD - BORDER + 4)):
        picture[line] = 0
        picture[:, line] = 0
    return shrink(picture, size).astype(np.float32)


def _render(state: np.ndarray, size: int) -> np.ndarray:
    """The rooms with the agent as a Gaussian blob of its radius, normalised to full colour at its brightest pixel."""
    scale = WORLD / size
    centres = (np.arange(size) + 0.5) * scale - 0.5  # where this picture's pixels lie in the published one
    across, down = (np.exp(-((centres - position) ** 2) / (2 * RADIUS**2)) for position in state)
    alpha = np.outer(down / down.max(), across / across.max()).astype(np.float32)[..., None]
    return (_background(size) * (1 - alpha) + AGENT_RGB * alpha).astype(np.uint8)
