"""A planner at work in its own thread: asked by one step of an episode, collected by a later one."""

import dataclasses
import threading
import time
from dataclasses import dataclass

import numpy as np

from agent.planning.base import Plan, Planner, Problem
from agent.world_models.base import WorldModel
from envs.errors import BadInput

PATIENCE_S = 5.0
"""How long a planner that is still at work when the episode ends is waited for."""


@dataclass(frozen=True)
class Request:
    """What was seen and what has been committed to when a plan is asked for."""

    step: int
    seen_at: float
    """A reading of `time.perf_counter`, like `deadline`."""
    deadline: float
    observations: np.ndarray
    """The newest observations `(c, ...)` one block apart."""
    past_actions: np.ndarray
    """The blocks `(c-1, k*A)` between them."""
    committed: np.ndarray
    """The actions `(C, A)` that will be carried out before the plan is ready."""
    leftover: np.ndarray
    """What is left of the last plan `(B, k*A)` after the whole blocks of them."""
    goal: np.ndarray
    rng: np.random.Generator


@dataclass(frozen=True)
class Timed:
    """A plan, what it was made from and when it is to start."""

    plan: Plan
    planner: Planner
    """Who made it."""
    latent: np.ndarray
    """Of the observation that it was made from `(D,)`."""
    goal: np.ndarray
    begin: int
    """The step of its first action."""
    start: int
    """The step from which on it is carried out; what it says of the steps before was committed already."""
    seen_at: float
    ms: float
    """How long it took."""


def plan_ahead(model: WorldModel, planner: Planner, request: Request) -> Timed:
    """A plan that begins with what is committed: whole blocks are foreseen, the rest are its own first actions."""
    started = time.perf_counter()
    seen, blocks = model.encode(request.observations), request.past_actions
    encode_ms = 1e3 * (time.perf_counter() - started)
    context, whole = seen, len(request.committed) // model.action_block
    if whole:
        foreseen = request.committed[: whole * model.action_block].reshape(whole, -1)
        context = np.concatenate([seen, model.rollout(seen[None], blocks[None], foreseen[None])[0]])
        blocks = np.concatenate([blocks, foreseen])
    context = context[-planner.context :]
    past, rest = blocks[len(blocks) - len(context) + 1 :], request.committed[whole * model.action_block :]
    problem = Problem(context, past, request.goal, request.rng, request.leftover, rest)
    plan = planner(model, [problem], request.deadline)[0]
    return Timed(
        plan=dataclasses.replace(plan, ms={"encode": encode_ms, **plan.ms}),
        planner=planner,
        latent=seen[-1],
        goal=request.goal,
        begin=request.step + whole * model.action_block,
        start=request.step + len(request.committed),
        seen_at=request.seen_at,
        ms=1e3 * (time.perf_counter() - started),
    )


class PlannerThread:
    """Plans in the background, one request at a time; an error is kept for whoever collects."""

    def __init__(self, model: WorldModel):
        self.model = model
        self._wake = threading.Condition()
        self._request: tuple[Planner, Request] | None = None
        self._done: Timed | None = None
        self._error: BaseException | None = None
        self._stop = False
        self._thread = threading.Thread(target=self._work, name="planner", daemon=True)
        self._thread.start()

    @property
    def idle(self) -> bool:
        """Whether a request would be taken up at once."""
        return self._request is None and self._done is None

    def submit(self, planner: Planner, request: Request) -> None:
        """Ask `planner` for a plan."""
        with self._wake:
            self._request = planner, request
            self._wake.notify()

    def collect(self, patience_s: float = 0.0) -> Timed | None:
        """The plan that has become ready, or does so in time; raises what killed the planner."""
        with self._wake:
            self._wake.wait_for(lambda: self._done is not None or self._error is not None, patience_s)
        if isinstance(self._error, BadInput):
            raise self._error
        if self._error is not None:
            raise RuntimeError(f"the planner thread died: {self._error}") from self._error
        done, self._done = self._done, None
        return done

    def close(self) -> None:
        """Stop; a planner that hangs is left behind rather than waited for."""
        with self._wake:
            self._stop = True
            self._wake.notify()
        self._thread.join(PATIENCE_S)

    def _work(self) -> None:
        try:
            while True:
                with self._wake:
                    self._wake.wait_for(lambda: self._stop or self._request is not None)
                    if self._stop or self._request is None:
                        return
                    planner, request = self._request
                done = plan_ahead(self.model, planner, request)
                with self._wake:
                    self._done, self._request = done, None
                    self._wake.notify_all()
        except BaseException as error:  # whoever collects raises it in the thread that can do something about it
            with self._wake:
                self._error = error
                self._wake.notify_all()
