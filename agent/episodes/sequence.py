"""Episodes one after another, and what a person may change while they run."""

import contextlib
import threading
import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import envs
from agent.episodes.agents import Agent, PlanningAgent
from agent.episodes.episode import Episode, Step
from agent.episodes.goals import Goals, random_goal
from agent.episodes.outcome import Outcome, append_line
from agent.episodes.realtime import realtime
from agent.episodes.replay import Logged, RecordedAgent, ReplayAgent
from agent.episodes.settings import EpisodeSettings
from agent.planning.base import Planner
from agent.world_models.base import WorldModel
from envs import Pair, Task

Command = Callable[[Episode], None]


class Stopped(Exception):
    """The sequence was told to stop in the middle of a plan."""


class StoppableModel:
    """A world model that can be stopped between two rollouts and is asked by one thread at a time."""

    def __init__(self, model: WorldModel):
        self.wrapped = model
        self._stop = threading.Event()
        self._lock = threading.Lock()

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

    def propose(
        self, latents: np.ndarray, goals: np.ndarray, blocks_left: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        with self._lock:
            return self.wrapped.propose(latents, goals, blocks_left)

    def stop(self) -> None:
        """Refuse further rollouts."""
        self._stop.set()


@dataclass(frozen=True)
class SequenceSettings:
    """Which episodes are played."""

    episode: EpisodeSettings
    """How each of them goes."""
    seed: int = 0
    episodes: int | None = None
    """None plays on until it is stopped."""
    log: Path | None = None
    """Where a line for every episode goes."""
    pair: int = 0
    """The first pair."""
    replay: tuple[Logged, ...] = ()
    """Episodes of a log that are played again, one after another and then from the start, instead of pairs."""


class EpisodeSequence:
    """Iterate over it for the records of all episodes; between two of them it carries out what it was told.

    Commands may come from another thread. Without commands the records depend on the settings only, whoever reads
    them and however slowly (in lockstep).
    """

    def __init__(self, task: Task, agent: Agent, goals: Goals, settings: SequenceSettings):
        self.task = task
        self.agent = agent
        self.goals = goals
        self.settings = settings
        self._pairs: list[Pair] = []
        self._commands: list[Command] = []
        self._pair = settings.pair
        self._attempt = 0
        self._leave = False

    def __iter__(self) -> Generator[Step, None, None]:
        how, episodes = self.settings.episode, self.settings.episodes
        while episodes is None or self._pair < self.settings.pair + episodes:
            self._attempt = 0
            self._leave = False
            outcome = Outcome()
            episode = self._replay(self._pair) if self.settings.replay else self._begin(self._pair)
            with contextlib.closing(realtime(episode) if how.realtime else iter(episode)) as steps:
                for step in steps:
                    outcome.add(step)
                    yield step
                    self._obey(episode)
                    if self._leave:
                        break
            if step.step == step.limit and self.settings.replay:
                self._compare(step)
            if step.step == step.limit and self.settings.log:
                append_line(self.settings.log, {"offset": how.offset, **outcome.line(self.agent)})
            if not self._leave:
                self._pair += 1

    def _compare(self, last: Step) -> None:
        """Say so if an episode that was played again did not go as the log has it."""
        logged = self.settings.replay[self._pair % len(self.settings.replay)]
        if last.first_hit != logged.first_hit and np.array_equal(last.goal, logged.goal):
            warnings.warn(
                f"pair {logged.pair} of seed {logged.seed} went otherwise than the log says: first hit "
                f"{last.first_hit}, not {logged.first_hit}",
                stacklevel=2,
            )

    # ---- commands ------------------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Play the same pair again."""
        self._tell(lambda episode: self._go(self._pair))

    def next_pair(self) -> None:
        """Leave this pair and play the next."""
        self._tell(lambda episode: self._go(self._pair + 1))

    def new_goal(self) -> None:
        """Pursue a random goal from here, with fresh time."""

        def aim(episode: Episode) -> None:
            self._attempt += 1
            self._aim(episode, random_goal(self.task, episode.seed, episode.pair, self._attempt))

        self._tell(aim)

    def aim(self, goal: np.ndarray) -> None:
        """Pursue this goal state from here, with fresh time."""
        self._tell(lambda episode: self._aim(episode, goal))

    def push(self, displacement: np.ndarray) -> None:
        """Push the goal object."""
        self._tell(lambda episode: episode.push(displacement))

    def set_planning(self, planning: bool) -> None:
        """Switch the planner on or off; a rule has none."""

        def switch(episode: Episode) -> None:
            if isinstance(episode.agent, PlanningAgent):
                episode.agent.planning = planning

        self._tell(switch)

    def set_planner(self, planner: Planner, plan_ms: float | None) -> None:
        """Make the next plans with another planner, each in `plan_ms`; a rule makes none."""

        def switch(episode: Episode) -> None:
            if isinstance(episode.agent, PlanningAgent):
                episode.agent.use(planner, plan_ms)

        self._tell(switch)

    def _tell(self, command: Command) -> None:
        self._commands.append(command)

    def _obey(self, episode: Episode) -> None:
        while self._commands:
            self._commands.pop(0)(episode)

    def _aim(self, episode: Episode, goal: np.ndarray) -> None:
        episode.aim(goal)
        episode.steps = episode.step + self.settings.episode.limit

    def _go(self, pair: int) -> None:
        self._pair, self._leave = pair, True

    # ---- episodes ------------------------------------------------------------------------------------------------

    def _begin(self, number: int) -> Episode:
        how, seed = self.settings.episode, self.settings.seed
        if number >= len(self._pairs):
            wanted = max(number + 1, 2 * len(self._pairs))
            if self.settings.episodes is not None:
                wanted = min(wanted, self.settings.pair + self.settings.episodes)
            self._pairs = envs.pairs(self.task, seed, wanted, how.offset)
        pair = self._pairs[number]
        goal = self.goals(self.task, pair, seed, number)
        episode = Episode(self.task, self.agent, pair.start, goal, seed, number, how.limit)
        if self.goals.picture is not None and self.agent.sees == "pixels":
            self.agent.aim(self.goals.picture)
        return episode

    def _replay(self, number: int) -> Episode:
        logged = self.settings.replay[number % len(self.settings.replay)]
        assert isinstance(self.agent, ReplayAgent | RecordedAgent)
        self.agent.follow(logged.actions)
        steps = len(logged.actions)
        return Episode(self.task, self.agent, logged.start, logged.goal, logged.seed, logged.pair, steps, logged.push)
