"""From latents to pictures: the states that show what a planner imagines."""

import threading
from collections import deque
from contextlib import suppress
from typing import NamedTuple, Protocol

import numpy as np

import envs
from agent.episodes.episode import Step
from agent.world_models.base import WorldModel
from envs import BadInput, Task

FRAMES, PER_EPISODE, SEEN = 400, 25, 500
FAR = 0.99
"""Share of stored frames that have another episode's frame nearer than what counts as far."""
STORED_SPACE = 0x5703ED  # the first word of the seeds of stored frames


class Pictured(NamedTuple):
    """States `(H, S)` that look like latents, and how far their own latents are from those, Euclidean `(H,)`."""

    states: np.ndarray
    gaps: np.ndarray


class LatentImages(Protocol):
    """Finds states whose pictures show latents."""

    def states(self, latents: np.ndarray) -> Pictured | None:
        """States that look like latents `(H, D)`; None while there is nothing to show."""
        ...

    def note(self) -> str:
        """What kind of pictures these are, in a few words."""
        ...

    def see(self, record: Step) -> None:
        """Take note of one record."""
        ...

    def latents(self) -> np.ndarray | None:
        """The latents `(M, D)` of stored frames, if there are any."""
        ...

    def is_far(self, latent: np.ndarray) -> bool:
        """Whether a latent `(D,)` lies far from those of every stored frame."""
        ...

    def wait(self, seconds: float) -> None:
        """Give it some time to have everything ready."""
        ...

    def close(self) -> None:
        """Do no more."""
        ...


def make_latent_images(model: WorldModel | None) -> LatentImages:
    """How latents of `model` become pictures; None is an agent without a model."""
    if model is None:
        return NoImages()
    holds_state = model.sees == "state" and model.latent_size > model.cost_size
    return ExactStates(model.cost_size) if holds_state else StoredFrames(model)


class NoImages:
    """Without a model there are no latents to show."""

    def states(self, latents: np.ndarray) -> Pictured | None:
        return None

    def note(self) -> str:
        return "no model, nothing imagined"

    def see(self, record: Step) -> None:
        pass

    def latents(self) -> np.ndarray | None:
        return None

    def is_far(self, latent: np.ndarray) -> bool:
        return False

    def wait(self, seconds: float) -> None:
        pass

    def close(self) -> None:
        pass


class ExactStates(NoImages):
    """For latents that hold the state itself behind the numbers that costs compare, as the simulator's do."""

    def __init__(self, cost_size: int):
        self._cost_size = cost_size

    def states(self, latents: np.ndarray) -> Pictured | None:
        return Pictured(latents[:, self._cost_size :], np.zeros(len(latents)))

    def note(self) -> str:
        return "exact: the simulator is the model"


class Frames(NamedTuple):
    """Latents `(B, D)` and the states `(B, S)` that they were encoded from."""

    latents: np.ndarray
    states: np.ndarray


class StoredFrames:
    """The nearest of some hundred frames: of the task's data policy, encoded in the background, and of these episodes.

    A latent of a world model without a decoder has no picture of its own, so the picture shown is one that the
    encoder maps near it.
    """

    def __init__(self, model: WorldModel, frames: int = FRAMES):
        self._model = model
        self._wanted = frames
        self._stored: list[Frames] = []
        self._seen: deque[Frames] = deque(maxlen=SEEN)
        self._apart: tuple[int, float] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._collect, name="stored-frames", daemon=True)
        self._thread.start()

    def states(self, latents: np.ndarray) -> Pictured | None:
        frames = [*self._stored, *self._seen]
        if not frames:
            return None
        size = self._model.cost_size
        known = np.concatenate([batch.latents for batch in frames])[:, :size].astype(np.float64)
        wanted = latents[:, :size].astype(np.float64)
        squared = np.square(known).sum(axis=1) - 2 * wanted @ known.T  # the term that all share is left out
        nearest = squared.argmin(axis=1)
        gaps = np.linalg.norm(wanted - known[nearest], axis=1)
        return Pictured(np.concatenate([batch.states for batch in frames])[nearest], gaps)

    def note(self) -> str:
        count = sum(len(batch.states) for batch in [*self._stored, *self._seen])
        return f"nearest of {count} stored frames" if count else "frames are being stored"

    def see(self, record: Step) -> None:
        thought = record.thought
        if thought.latent is not None and record.clock is None:  # against the clock the latent is of an older state
            self._seen.append(Frames(thought.latent[None], record.state[None]))
        if thought.goal_latent is not None and record.step == 0:
            self._seen.append(Frames(thought.goal_latent[None], record.goal[None]))

    def latents(self) -> np.ndarray | None:
        batches = [batch.latents for batch in self._stored]
        return np.concatenate(batches) if batches else None

    def is_far(self, latent: np.ndarray) -> bool:
        """Whether it is further from the nearest frame than nearly every frame is from frames of other episodes."""
        stored = list(self._stored)
        if len(stored) < 2:
            return False
        size = self._model.cost_size
        batches = [batch.latents[:, :size] for batch in stored]
        if self._apart is None or self._apart[0] != len(stored):
            gaps = [
                _nearest(batch, np.concatenate(batches[:number] + batches[number + 1 :]))
                for number, batch in enumerate(batches)
            ]
            self._apart = len(stored), float(np.quantile(np.concatenate(gaps), FAR))
        return float(_nearest(latent[None, :size], np.concatenate(batches))[0]) > self._apart[1]

    def wait(self, seconds: float) -> None:
        """Give the background some time to finish."""
        self._thread.join(seconds)

    def close(self) -> None:
        """Collect no more."""
        self._stop.set()
        self._thread.join()

    def _collect(self) -> None:
        task = envs.make(self._model.task, size=self._model.image_size, look=self._model.look)
        for episode in range(-(-self._wanted // PER_EPISODE)):
            if self._stop.is_set():
                break
            states = self._episode(task, episode)
            seen = np.stack([task.draw(state) for state in states]) if self._model.sees == "pixels" else states
            with suppress(BadInput):  # broken weights: whoever plans with them says so
                self._stored.append(Frames(self._model.encode(seen), states))
        task.close()

    def _episode(self, task: Task, episode: int) -> np.ndarray:
        """States `(PER_EPISODE, S)` spread over an episode of the data policy."""
        rng = np.random.default_rng([STORED_SPACE, episode])
        states, _ = task.episode(rng, task.episode_steps)
        return states[np.linspace(0, len(states) - 1, PER_EPISODE).round().astype(int)]


def _nearest(latents: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The Euclidean distance `(N,)` of each latent `(N, D)` to the nearest of others `(M, D)`."""
    return np.linalg.norm(latents[:, None].astype(np.float64) - others[None], axis=-1).min(axis=1)
