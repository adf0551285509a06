"""A planner at work in its own thread: asked by one step of an episode, collected by a later one."""

import threading
import time
from dataclasses import dataclass

import numpy as np

from agent.planner import Plan, Planner, Problem
from agent.world_model import WorldModel

PATIENCE_S = 5.0
"""How long a planner that is still at work when the episode ends is waited for."""


@dataclass(frozen=True)
class Request:
    """What was seen and what has been committed to when a plan is asked for."""

    step: int
    start: int
    """The step at which the plan will start."""
    seen_at: float
    """A reading of `time.perf_counter`, like `deadline`."""
    deadline: float
    observations: np.ndarray
    """The newest observations `(c, ...)` one block apart."""
    past_actions: np.ndarray
    """The blocks `(c-1, k*A)` between them."""
    committed: np.ndarray
    """The blocks `(L, k*A)` that will be carried out before the plan starts."""
    leftover: np.ndarray
    """What is left of the last plan `(B, k*A)` after that."""
    goal: np.ndarray
    rng: np.random.Generator


@dataclass(frozen=True)
class Timed:
    """A plan, what it was made from and when it is to start."""

    plan: Plan
    latent: np.ndarray
    """Of the observation that it was made from `(D,)`."""
    goal: np.ndarray
    start: int
    seen_at: float
    ms: float
    """How long it took."""


def plan_ahead(model: WorldModel, planner: Planner, request: Request) -> tuple[Plan, np.ndarray]:
    """A plan from the latent predicted for its start, and the latent of the newest observation."""
    seen = model.encode(request.observations)
    predicted = model.rollout(seen[None], request.past_actions[None], request.committed[None])[0]
    context = np.concatenate([seen, predicted])[-planner.context :]
    blocks = np.concatenate([request.past_actions, request.committed])
    past = blocks[len(blocks) - len(context) + 1 :]
    problem = Problem(context, past, request.goal, request.rng, request.leftover)
    return planner(model, [problem], request.deadline)[0], seen[-1]


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

    def collect(self) -> Timed | None:
        """The plan that has become ready, if any; raises what killed the planner."""
        if not self._thread.is_alive():
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
                started = time.perf_counter()
                plan, latent = plan_ahead(self.model, planner, request)
                ms = 1e3 * (time.perf_counter() - started)
                self._done = Timed(plan, latent, request.goal, request.start, request.seen_at, ms)
                self._request = None
        except BaseException as error:  # whoever collects raises it in the thread that can do something about it
            self._error = error
