"""PushT: a disc pushes a T-shaped block on a table.

State 7: agent x, y, block x, y (middle of the bar's outer edge), block angle in [0, 2 pi), agent vx, vy, in pixels of
a 512 x 512 world, x right, y down. Action 2: where the agent should go next, relative to where it is, in units of 100
px. Control rate 10 Hz, ten physics steps of 0.01 s each. Start: agent uniform on [50, 450]^2, block on [100, 400]^2,
any angle. Success: agent and block positions together less than 20 px from the goal's (as one 4-vector) and the
block's angle less than 20 degrees from the goal's.

Two declared differences from the published task make seven numbers the whole state, so that a state replays bit for
bit. Pymunk moves a pushed block at the beginning of the next physics step; here that pending motion is completed
before the state is read, and contacts are found afresh at every control step. `set_state` sets the state as given;
the published one lets 0.01 s pass.
"""

import cmath
import contextlib
import functools
import math
from collections.abc import Iterator

import cv2
import numpy as np
import pymunk

from envs.base import FloorPlan, Policy, Task, shrink

WORLD = 512
PHYSICS_DT, PHYSICS_STEPS = 0.01, 10
STIFFNESS, DAMPING, REACH = 100.0, 20.0, 100.0
AGENT_RADIUS = 15.0
BAR = ((-60, 30), (60, 30), (60, 0), (-60, 0))
STEM = ((-15, 30), (-15, 120), (15, 120), (15, 30))
PARTS = np.array([BAR, STEM], float)
CENTRE_OF_GRAVITY = (0.0, 45.0)  # mean of the two polygons' centroids
ANCHOR = np.array([256, 256, np.pi / 4])  # the green T: something to look at, never the goal
WALLS = (((5, 506), (5, 5)), ((5, 5), (506, 5)), ((506, 5), (506, 506)), ((5, 506), (506, 506)))
INSIDE = (20.0, 492.0)

LIGHT_GREEN, LIGHT_GRAY = (144, 238, 144), (211, 211, 211)
SLATE, ROYAL = (119, 136, 153), (65, 105, 225)
LIGHT_SLATE, LIGHT_ROYAL = (142, 163, 183), (78, 126, 255)  # 1.2 times the same
BITS = 4  # OpenCV draws at a sixteenth of a pixel


class PushT(Task):
    """A disc pushes a T-shaped block on a table."""

    name = "pusht"
    state_names = ("agent_x", "agent_y", "block_x", "block_y", "block_angle", "agent_vx", "agent_vy")
    action_names = ("dx", "dy")
    control_hz = 10.0
    proprio = (0, 1, 5, 6)
    movable = (2, 3)
    moved_by = 5.0
    rule = "agent and block less than 20 px (as one 4-vector) and the block's angle less than 20 deg from the goal"
    unit = "px"
    note = "the green T is decoration, not the goal"
    floor_plan = FloorPlan(WORLD, (0, 1), velocity=(5, 6), objects=((0, 1), (2, 3)), angle=4)
    drag = ((WORLD, 0), (0, WORLD))

    def start(self, rng: np.random.Generator) -> np.ndarray:
        agent, block = rng.uniform(50, 450, 2), rng.uniform(100, 400, 2)
        angle = rng.uniform(-2 * np.pi, 2 * np.pi) % (2 * np.pi)
        return np.array([*agent, *block, angle, 0.0, 0.0])

    @functools.cached_property
    def bodies(self) -> "Bodies":
        return Bodies()

    def advance(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        agent, block = self.bodies.agent, self.bodies.block
        x, y, *_, vx, vy = state.tolist()
        target_x, target_y = x + REACH * float(action[0]), y + REACH * float(action[1])
        with self.bodies.space(state) as space:
            for _ in range(PHYSICS_STEPS):
                vx += (STIFFNESS * (target_x - x) - DAMPING * vx) * PHYSICS_DT
                vy += (STIFFNESS * (target_y - y) - DAMPING * vy) * PHYSICS_DT
                agent.velocity = vx, vy
                space.step(PHYSICS_DT)
                x, y = x + vx * PHYSICS_DT, y + vy * PHYSICS_DT  # nothing stops a kinematic body
            pymunk.Body.update_position(block, PHYSICS_DT)  # the pending motion; its velocity dies with this step
        return np.array([x, y, *block.position, block.angle % (2 * np.pi), vx, vy])

    def draw(self, state: np.ndarray) -> np.ndarray:
        return shrink(_published(state), self.size) if self.look == "paper" else _render(state, self.size)

    def portrait(self, state: np.ndarray, size: int) -> np.ndarray:
        return _render(state, size)

    def success(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        turn = np.abs(np.asarray(state)[..., 4] - np.asarray(goal)[..., 4]) % (2 * np.pi)
        return (self.distance(state, goal) < 20) & (np.minimum(turn, 2 * np.pi - turn) < np.pi / 9)

    def distance(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return np.linalg.norm(np.asarray(state)[..., :4] - np.asarray(goal)[..., :4], axis=-1)

    def features(self, state: np.ndarray) -> np.ndarray:
        state = np.asarray(state)
        angle = state[..., 4:5]
        return np.concatenate([state[..., :4] / 20, np.cos(angle) * 9 / np.pi, np.sin(angle) * 9 / np.pi], axis=-1)

    def reward(self, state: np.ndarray, goal: np.ndarray) -> float:
        return -float(np.linalg.norm(goal - state))  # as published

    def expert(self, rng: np.random.Generator) -> Policy:
        return Pusher(self, rng)


class Bodies:
    """The walls, the disc and the T, made once and put into a fresh space for every control step."""

    def __init__(self) -> None:
        frame = pymunk.Body(body_type=pymunk.Body.STATIC)
        self.agent = pymunk.Body(body_type=pymunk.Body.KINEMATIC)
        self.block = pymunk.Body(1.0, 2 * pymunk.moment_for_poly(1.0, BAR))
        self.block.center_of_gravity = CENTRE_OF_GRAVITY
        walls = [pymunk.Segment(frame, begin, end, 2) for begin, end in WALLS]
        disc = pymunk.Circle(self.agent, AGENT_RADIUS)
        t = [pymunk.Poly(self.block, BAR), pymunk.Poly(self.block, STEM)]
        self.everything: list[pymunk.Body | pymunk.Shape] = [self.agent, self.block, frame, *walls, disc, *t]

    @contextlib.contextmanager
    def space(self, state: np.ndarray) -> Iterator[pymunk.Space]:
        """A space without memory of contacts, in `state`."""
        agent_x, agent_y, block_x, block_y, angle, vx, vy = state.tolist()
        self.agent.position, self.agent.velocity = (agent_x, agent_y), (vx, vy)
        self.block.angle = angle  # before the position, which pymunk keeps by way of the centre of gravity
        self.block.position, self.block.velocity, self.block.angular_velocity = (block_x, block_y), (0, 0), 0
        space = pymunk.Space()
        space.damping = 0.0
        space.add(*self.everything)
        try:
            yield space
        finally:
            space.remove(*self.everything)


class Pusher:
    """Pushes the T again and again: walk round it to a contact point, push through it for a while, choose another.

    The contact point is the one of many random ones whose push turns and shifts the T most nearly towards a random
    goal pose; a fresh goal is drawn now and then. A third of the pushes ignore the goal, and Gaussian noise lies on
    every action. Points of the plane are complex numbers here, so that a rotation is a product.
    """

    FREE_SHARE = 1 / 3
    CANDIDATES = 24
    REACH_PX = 30.0
    CLEARANCE = AGENT_RADIUS + 12

    def __init__(self, task: PushT, rng: np.random.Generator):
        self.task, self.rng = task, rng
        self.noise = rng.uniform(0.02, 0.15)
        self.speed = rng.uniform(0.25, 0.6)
        self.goal = task.start(rng)
        self.pushing = 0
        self.contact = self.inward = 0j
        self.plan_needed = True

    def __call__(self, state: np.ndarray) -> np.ndarray:
        if self.plan_needed:
            self._choose_contact(state)
        agent_x, agent_y, block_x, block_y, angle, *_ = state.tolist()
        agent, block, rotation = complex(agent_x, agent_y), complex(block_x, block_y), cmath.rect(1, angle)
        contact, inward = block + rotation * self.contact, rotation * self.inward
        if self.pushing > 0:
            self.pushing -= 1
            self.plan_needed = self.pushing == 0
            aside = contact - agent
            aside -= inward * (aside * inward.conjugate()).real
            target = agent + inward * self.REACH_PX + aside / 2
        else:
            stand_off = contact - inward * self.CLEARANCE
            target = _walk_round(agent, stand_off, block + rotation * complex(*CENTRE_OF_GRAVITY))
            if abs(stand_off - agent) < 15:
                self.pushing = int(self.rng.integers(4, 13))
        noise = self.rng.normal(0, self.noise, 2).tolist()
        return np.array(
            [self._command(agent_x, target.real, noise[0]), self._command(agent_y, target.imag, noise[1])], np.float32
        )

    def _command(self, here: float, target: float, noise: float) -> float:
        """One axis of the action: towards the target, no faster than this episode's speed, noisy, inside the walls."""
        wanted = min(max((target - here) / REACH, -self.speed), self.speed) + noise
        return min(max(wanted, (INSIDE[0] - here) / REACH, -1.0), (INSIDE[1] - here) / REACH, 1.0)

    def _choose_contact(self, state: np.ndarray) -> None:
        """Pick the boundary point and inward normal (both in the block's frame) of the next push."""
        block, goal = complex(*state[2:4]), complex(*self.goal[2:4])
        if self.rng.random() < 0.15 or abs(goal - block) < 20:
            self.goal = self.task.start(self.rng)
            goal = complex(*self.goal[2:4])
        points, normals = _boundary(self.rng, self.CANDIDATES)
        rotation = cmath.rect(1, state[4])
        stand_off = block + rotation * (points - normals * self.CLEARANCE)
        low, high = INSIDE
        reachable = (low < stand_off.real) & (stand_off.real < high) & (low < stand_off.imag) & (stand_off.imag < high)
        torque = ((points - complex(*CENTRE_OF_GRAVITY)).conj() * normals).imag / 60
        turn = (self.goal[4] - state[4] + np.pi) % (2 * np.pi) - np.pi
        shift = (goal - block) / max(abs(goal - block), 60.0)
        usefulness = (rotation * normals * shift.conjugate()).real + torque * np.clip(turn, -1, 1)
        if self.rng.random() < self.FREE_SHARE:
            usefulness = self.rng.random(self.CANDIDATES)
        best = int(np.argmax(np.where(reachable, usefulness, usefulness - 10)))
        self.contact, self.inward = complex(points[best]), complex(normals[best])
        self.plan_needed = False


def _walk_round(agent: complex, to: complex, centre: complex, radius: float = 105.0) -> complex:
    """The next way point from `agent` to `to` that keeps out of a disc round the block while the way is long."""
    here, there = agent - centre, to - centre
    gap = cmath.phase(there * here.conjugate())
    if abs(gap) < 0.5:
        return to
    return centre + cmath.rect(max(radius, abs(here)), cmath.phase(here) + math.copysign(min(abs(gap), 0.6), gap))


@functools.cache
def _edges() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The outline's edges: begin, end and inward unit normal, each complex `(8,)`, in the block's frame."""
    corners = [(-60, 0), (60, 0), (60, 30), (15, 30), (15, 120), (-15, 120), (-15, 30), (-60, 30)]
    begin = np.array([complex(*corner) for corner in corners])
    end = np.roll(begin, -1)
    return begin, end, 1j * (end - begin) / np.abs(end - begin)


def _boundary(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Random points on the T's outline, uniform by length, with their inward normals, each complex `(count,)`."""
    begin, end, normal = _edges()
    length = np.abs(end - begin)
    edge = rng.choice(len(begin), count, p=length / length.sum())
    return begin[edge] + rng.uniform(0.05, 0.95, count) * (end - begin)[edge], normal[edge]


def _rotate(vectors: np.ndarray, angle: float) -> np.ndarray:
    """Vectors `(..., 2)` turned from the block's frame into the world's."""
    cos, sin = math.cos(angle), math.sin(angle)
    return vectors @ np.array([[cos, sin], [-sin, cos]])


def _corners(pose: np.ndarray) -> np.ndarray:
    """The corners `(2, 4, 2)` of bar and stem in the world's pixels for a pose (x, y, angle)."""
    return _rotate(PARTS, pose[2]) + pose[:2]


def _render(state: np.ndarray, size: int) -> np.ndarray:
    """The table drawn anti-aliased at twice the `size` and shrunk by area."""
    picture = _table(2 * size).copy()
    for part in _place(_corners(state[2:5]), 2 * size):
        cv2.fillConvexPoly(picture, part, LIGHT_SLATE, cv2.LINE_AA, BITS)
    radius = round(AGENT_RADIUS * 2 * size / WORLD * 2**BITS)
    cv2.circle(picture, _place(state[:2], 2 * size).tolist(), radius, ROYAL, -1, cv2.LINE_AA, BITS)
    return shrink(picture, size)


@functools.cache
def _table(canvas: int) -> np.ndarray:
    """The walls and the green T on a `canvas` of pixels."""
    picture = np.full((canvas, canvas, 3), 255, np.uint8)
    begin, end = (_place(corner, canvas).tolist() for corner in ((5, 5), (506, 506)))
    cv2.rectangle(picture, begin, end, LIGHT_GRAY, 1, cv2.LINE_AA, BITS)
    for part in _place(_corners(ANCHOR), canvas):
        cv2.fillConvexPoly(picture, part, LIGHT_GREEN, cv2.LINE_AA, BITS)
    return picture


def _place(points: np.ndarray | tuple[int, int], canvas: int) -> np.ndarray:
    """World pixels as fixed-point pixels of a `canvas`."""
    unit = canvas / WORLD * 2**BITS
    return np.rint((np.asarray(points) + 0.5) * unit - 2 ** (BITS - 1)).astype(np.int32)


def _published(state: np.ndarray) -> np.ndarray:
    """The published picture: 512 px, integer vertices, outlined shapes, scaled bilinearly to 224."""
    picture = np.full((WORLD, WORLD, 3), 255, np.uint8)
    for part in _corners(ANCHOR):
        cv2.fillPoly(picture, [part.astype(np.int32)], LIGHT_GREEN)
    for begin, end in WALLS:
        cv2.line(picture, begin, end, LIGHT_GRAY, 4)
    for part in _corners(state[2:5]):
        corners = [np.round(part).astype(np.int32)]
        cv2.fillPoly(picture, corners, LIGHT_SLATE)
        cv2.polylines(picture, corners, True, SLATE, 4)
    centre = np.round(state[:2]).astype(int).tolist()
    cv2.circle(picture, centre, int(AGENT_RADIUS), ROYAL, -1)
    cv2.circle(picture, centre, int(AGENT_RADIUS) - 4, LIGHT_ROYAL, -1)
    return cv2.resize(picture, (224, 224), interpolation=cv2.INTER_LINEAR)
