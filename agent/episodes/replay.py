"""Episodes of a log, played again: the actions are the logged ones, and the plans are made beside them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agent.episodes.agents import ModelAgent, Thought
from agent.episodes.outcome import read_lines
from envs import BadInput, Task

PICKS = {"failed": False, "reached": True}
"""What can be picked of a log by its outcome."""


@dataclass(frozen=True)
class Logged:
    """One line of a log."""

    task: str
    seed: int
    pair: int
    start: list[float]
    goal: list[float]
    actions: list[list[float]]
    pushes: list[tuple[int, list[float]]]
    first_hit: int | None
    planner: dict[str, Any] | None
    """Name and settings; None for a rule."""
    model_sha256: str | None

    @classmethod
    def of(cls, line: dict[str, Any]) -> "Logged":
        return cls(**{name: line[name] for name in cls.__dataclass_fields__})

    @property
    def planner_words(self) -> tuple[str | None, tuple[str, ...]]:
        """The planner as it is written on the command line: its name and `key=value` settings."""
        settings = dict(self.planner or {})
        name = settings.pop("name", None)
        return name, tuple(f"{key}={json.dumps(value)}" for key, value in settings.items())

    def push(self, task: Task, state: np.ndarray, seed: int, pair: int, step: int) -> np.ndarray | None:
        """How the goal object was pushed before `step` passed, as an episode asks for it."""
        pushed = [np.array(push) for at, push in self.pushes if at == step]
        return np.sum(pushed, axis=0) if pushed else None


def read_episodes(path: Path, subject: str, pick: str = "all") -> list[Logged]:
    """The episodes of one subject, a model or a rule, in a log, of which `pick` names some.

    `pick` is all, failed, reached, the number of a line (from 1), or a seed and a pair (100/7).
    """
    if not path.is_file():
        raise BadInput(f"there is no log {path}")
    lines = [(number, line) for number, line in enumerate(read_lines(path), 1) if "actions" in line]
    if not lines:
        raise BadInput(f"{path} holds no episodes: --replay takes episodes.jsonl of an evaluation, or a file of --log")
    subjects = sorted({_subject(line, subject) for _, line in lines})
    if pick.isdigit():
        found = [line for number, line in lines if number == int(pick)]
    else:
        own = [line for _, line in lines if Path(_subject(line, subject)).name == Path(subject).name]
        if not own:
            raise BadInput(f"{path} holds no episodes of {subject}: it has those of {', '.join(subjects)}")
        found = [line for line in own if _picked(line, pick)]
    if not found:
        raise BadInput(f"{path} holds no episode that --pick {pick} names, of {len(lines)}")
    return [Logged.of(line) for line in found]


def _subject(line: dict[str, Any], model: str) -> str:
    """Who played: an evaluation says so; a log of play.py has one model, the one that it was played with."""
    return str(line.get("subject") or (model if line["agent"] in ("model", "replay") else line["agent"]))


def _picked(line: dict[str, Any], pick: str) -> bool:
    if pick == "all":
        return True
    if pick in PICKS:
        return bool(line["success"]) == PICKS[pick]
    seed, slash, pair = pick.partition("/")
    if not (slash and seed.isdigit() and pair.isdigit()):
        raise BadInput(
            f"--pick is all, failed, reached, the number of a line, or a seed and a pair (100/7), not '{pick}'"
        )
    return (line["seed"], line["pair"]) == (int(seed), int(pair))


class ReplayAgent(ModelAgent):
    """Plans as a `ModelAgent` does, but carries out the actions of a logged episode until it is given another goal."""

    name = "replay"
    _logged: Sequence[Sequence[float]] = ()

    def follow(self, actions: Sequence[Sequence[float]]) -> None:
        """Carry out these actions in the next episode."""
        self._next = actions

    def begin(self, task: Task, seed: int, pair: int) -> None:
        super().begin(task, seed, pair)
        self._begun = True

    def aim(self, goal: np.ndarray) -> None:
        self._logged = self._next if self._begun else ()  # the first goal of an episode is the logged one
        self._begun = False
        super().aim(goal)

    def _planned(self, step: int) -> np.ndarray:
        return np.array(self._logged[step], np.float32) if step < len(self._logged) else super()._planned(step)


class RecordedAgent:
    """Carries out the actions of a logged episode of a rule."""

    name = "replay"
    sees: Any = "state"
    thought = Thought()
    new_plan_ms: float | None = None
    misses = 0
    floor_ms: float | None = None
    model = None
    planner = None
    planning = False

    def follow(self, actions: Sequence[Sequence[float]]) -> None:
        """Carry out these actions in the next episode."""
        self._logged = actions

    def begin(self, task: Task, seed: int, pair: int) -> None:
        self._rest = np.zeros(len(task.action_names))

    def aim(self, goal: np.ndarray) -> None:
        pass

    def must_see(self, step: int) -> bool:
        return False

    def see(self, step: int, observation: np.ndarray | None) -> None:
        self._step = step

    def act(self) -> np.ndarray:
        return np.array(self._logged[self._step]) if self._step < len(self._logged) else self._rest
