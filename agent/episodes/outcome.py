"""Episodes as lines of JSON: one atomic append each, so that several processes may share a file."""

import json
import math
import os
import platform
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from agent.episodes.agents import Agent
from agent.episodes.episode import Step
from agent.planning import settings_of

LIBRARIES = ("qqworld", "numpy", "onnxruntime", "onnxruntime-gpu", "pymunk", "mujoco", "dm-control", "ogbench")


class Outcome:
    """What remains of an episode: feed it the records in turn and ask for its `line`.

    The actions and pushes are kept, so that the episode can be replayed; pictures and plans are not.
    """

    def __init__(self) -> None:
        self.actions: list[list[float]] = []
        self.pushes: list[tuple[int, list[float]]] = []
        self.plan_ms: list[float] = []
        self.ages: list[float] = []
        self.reactions: list[float] = []
        self.nearest = math.inf
        self.start: Step | None = None
        self.last: Step | None = None

    def add(self, step: Step) -> None:
        """Take note of one record."""
        self.start = self.start or step
        self.last = step
        self.nearest = min(self.nearest, step.distance)
        if step.action is not None:
            self.actions.append(np.asarray(step.action, np.float64).tolist())
        if step.pushed is not None:
            self.pushes.append((step.step - 1, step.pushed.tolist()))
        if step.plan_ms is not None:
            self.plan_ms.append(step.plan_ms)
        if step.clock and step.clock.plan_age_ms is not None:
            self.ages.append(step.clock.plan_age_ms)
        if step.new_plan and step.clock and step.clock.reaction_ms is not None:
            self.reactions.append(step.clock.reaction_ms)

    def line(self, agent: Agent) -> dict[str, Any]:
        """The episode as a JSON object; `agent` is who played it."""
        if self.start is None or self.last is None:
            raise ValueError("an episode without records has no outcome")
        start, last = self.start, self.last
        return {
            "task": start.task,
            "agent": start.agent,
            "seed": start.seed,
            "pair": start.pair,
            "start": start.state.tolist(),
            "goal": last.goal.tolist(),
            "success": last.first_hit is not None,
            "first_hit": last.first_hit,
            "final": last.success,
            "steps": last.step,
            "start_distance": start.distance,
            "nearest_distance": self.nearest,
            "final_distance": last.distance,
            "plans": len(self.plan_ms),
            "plan_ms": [round(ms, 2) for ms in self.plan_ms],
            "plan_ms_p50": percentile(self.plan_ms, 50),
            "plan_ms_p95": percentile(self.plan_ms, 95),
            "realtime": last.clock is not None,
            "misses": last.misses,
            "plan_floor_ms": agent.floor_ms,
            "plan_age_ms_p50": percentile(self.ages, 50),
            "reaction_ms_p50": percentile(self.reactions, 50),
            "actions": self.actions,
            "pushes": self.pushes,
            **provenance(agent),
        }


def provenance(agent: Agent | None) -> dict[str, Any]:
    """What an episode was made with: model, planner, provider, GL backend, versions; None for nobody knows who."""
    model, planner = (agent.model, agent.planner) if agent else (None, None)
    return {
        "model_sha256": model.sha256 if model else None,
        "planner": settings_of(planner) if planner else None,
        "provider": model.provider if model else None,
        "gl": os.environ.get("MUJOCO_GL", "none"),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """The versions that an episode can depend on."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The value below which `percent` per cent of `values` lie, by linear interpolation; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def append_line(path: Path, line: dict[str, Any]) -> None:
    """Add one line to a log in a single write, whole or not at all for everyone who reads it."""
    data = (json.dumps(line, allow_nan=False) + "\n").encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        written = os.write(descriptor, data)
        if written != len(data):  # a full disk: end the half line, so that the next one stands alone
            os.write(descriptor, b"\n")
            raise OSError(f"{path} could not be written to: the disk may be full")
    finally:
        os.close(descriptor)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log; a line that a crash cut short is passed over."""
    if not path.exists():
        return
    with path.open() as file:
        for text in file:
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue
            if isinstance(line, dict):
                yield line
