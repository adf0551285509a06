"""Episodes one after another, and what a person may change while they run."""

import contextlib
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import envs
from agent.episodes import outcome as log
from agent.episodes.episode import STEPS, Episode, Step
from agent.episodes.goals import Goals
from agent.episodes.realtime import realtime
from agent.planning.base import Planner
from envs import OFFSET, Pair, Task

Command = Callable[[Episode], None]


class Stopped(Exception):
    """The sequence was told to stop in the middle of a plan."""


class StoppableModel:
    """A world model that can be stopped between two rollouts and is asked by one thread at a time."""

    def __init__(self, model: Any):
        self.wrapped, self._stop, self._lock = model, threading.Event(), threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def encode(self, observations: np.ndarray) -> np.ndarray:
        with self._lock:
            return self.wrapped.encode(observations)

    def rollout(self, context: np.ndarray, past_actions: np.ndarray, actions: np.ndarray) -> np.ndarray:
        if self._stop.is_set():
            raise Stopped
        with self._lock:
            return self.wrapped.rollout(context, past_actions, actions)

    def propose(self, latents: np.ndarray, goals: np.ndarray, blocks_left: np.ndarray) -> tuple[np.ndarray, ...]:
        with self._lock:
            return self.wrapped.propose(latents, goals, blocks_left)

    def stop(self) -> None:
        """Refuse further rollouts."""
        self._stop.set()


@dataclass(frozen=True)
class Settings:
    """What is played."""

    seed: int = 0
    episodes: int | None = None
    """None plays on until it is stopped."""
    steps: int = STEPS
    offset: int = OFFSET
    """Steps of the data policy between start and goal of a pair."""
    realtime: bool = False
    log: Path | None = None


class EpisodeSequence:
    """Iterate over it for the records of all episodes; between two of them it carries out what it was told.

    Commands may come from another thread. Without commands the records depend on the settings only, whoever reads
    them and however slowly (in lockstep).
    """

    def __init__(self, task: Task, agent: Any, goals: Goals, settings: Settings):
        self.task, self.agent, self.goals, self.settings = task, agent, goals, settings
        self._pairs: list[Pair] = []
        self._commands: list[Command] = []
        self._pair, self._attempt, self._leave = 0, 0, False

    def __iter__(self) -> Generator[Step, None, None]:
        while self.settings.episodes is None or self._pair < self.settings.episodes:
            self._attempt, self._leave, outcome = 0, False, log.Outcome()
            episode = self._begin(self._pair)
            steps: Any = realtime(episode) if self.settings.realtime else iter(episode)
            with contextlib.closing(steps):
                for step in steps:
                    outcome.add(step)
                    yield step
                    self._obey(episode)
                    if self._leave:
                        break
            if step.step == step.limit and self.settings.log:
                log.append(self.settings.log, {"offset": self.settings.offset, **outcome.line(self.agent)})
            if not self._leave:
                self._pair += 1

    # ---- commands ------------------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Play the same pair again."""
        self._tell(lambda episode: self._go(episode.pair))

    def next_pair(self) -> None:
        """Leave this pair and play the next."""
        self._tell(lambda episode: self._go(episode.pair + 1))

    def new_goal(self) -> None:
        """Pursue a random goal from here, with fresh time."""

        def aim(episode: Episode) -> None:
            self._attempt += 1
            goal = Goals("random")(self.task, self._pairs[episode.pair], episode.seed, episode.pair, self._attempt)
            self._aim(episode, goal)

        self._tell(aim)

    def aim(self, goal: np.ndarray) -> None:
        """Pursue this goal state from here, with fresh time."""
        self._tell(lambda episode: self._aim(episode, goal))

    def push(self, displacement: np.ndarray) -> None:
        """Push the thing that the goal is about."""
        self._tell(lambda episode: episode.push(displacement))

    def set_planning(self, planning: bool) -> None:
        """Switch the planner on or off."""

        def switch(episode: Episode) -> None:
            episode.agent.planning = planning  # type: ignore[attr-defined]

        self._tell(switch)

    def set_planner(self, planner: Planner) -> None:
        """Make the next plans with another planner."""

        def switch(episode: Episode) -> None:
            episode.agent.planner = planner  # type: ignore[attr-defined]

        self._tell(switch)

    def _tell(self, command: Command) -> None:
        self._commands.append(command)

    def _obey(self, episode: Episode) -> None:
        while self._commands:
            self._commands.pop(0)(episode)

    def _aim(self, episode: Episode, goal: np.ndarray) -> None:
        episode.aim(goal)
        episode.steps = episode.step + self.settings.steps

    def _go(self, pair: int) -> None:
        self._pair, self._leave = pair, True

    # ---- episodes ------------------------------------------------------------------------------------------------

    def _begin(self, number: int) -> Episode:
        if number >= len(self._pairs):
            wanted = max(number + 1, 2 * len(self._pairs))
            wanted = min(wanted, self.settings.episodes or wanted)
            self._pairs = envs.pairs(self.task, self.settings.seed, wanted, self.settings.offset)
        pair = self._pairs[number]
        goal = self.goals(self.task, pair, self.settings.seed, number)
        episode = Episode(self.task, self.agent, pair.start, goal, self.settings.seed, number, self.settings.steps)
        if self.goals.picture is not None and self.agent.sees == "pixels":
            self.agent.aim(self.goals.picture)
        return episode
