"""What a person may plan with: the planners that a model allows, and their settings while it plays."""

import dataclasses
import json
from typing import Any

from agent import planning
from agent.episodes.agents import Agent, PlanningAgent, check_fit
from agent.planning.base import Planner
from agent.world_models.base import WorldModel
from envs import BadInput, recipes

SETTINGS = {
    "candidates": "candidates",
    "iterations": "iterations",
    "horizon": "horizon",
    "std": "spread",
    "cost": "cost",
}
"""Settings of planners that can be changed while it plays, and what they are called."""
TIME = "plan_ms"
"""The setting of the agent: time for one plan."""
COSTS = ("terminal", "min", "sum")
TIMES_MS = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, None)
SPREAD_STEP = 1.25


class PlannerChoice:
    """The planners of an agent's model, in turn, with settings that can be changed; a rule has none."""

    def __init__(self, agent: Agent):
        self._model = agent.model
        self._planners = available_planners(agent)
        self.plan_ms = agent.plan_ms if isinstance(agent, PlanningAgent) else None
        self.selected = 0
        """Which setting is to be changed."""

    def __bool__(self) -> bool:
        return bool(self._planners)

    @property
    def planner(self) -> Planner:
        """The one in use."""
        return self._planners[0]

    def next_planner(self) -> None:
        """Use the next one; its settings are as they were left."""
        self._planners.append(self._planners.pop(0))

    def shown(self) -> tuple[tuple[str, str], ...]:
        """The settings that can be changed, by the names that people read, with their values."""
        known = planning.settings_of(self.planner)
        values = [(SETTINGS.get(name, name), _words(known[name])) for name in self._names[:-1]]
        return (*values, (TIME, "no limit" if self.plan_ms is None else f"{self.plan_ms:g}"))

    def select(self, way: int) -> None:
        """Choose the setting that is so many further on."""
        self.selected = (self.selected + way) % len(self._names)

    def change(self, up: bool) -> None:
        """Raise or lower the selected setting; a ValueError of one sentence where that cannot be."""
        known = planning.settings_of(self.planner)
        name, way = self._names[min(self.selected, len(self._names) - 1)], 1 if up else -1
        if name == TIME:
            nearest = min(range(len(TIMES_MS)), key=lambda place: _gap(TIMES_MS[place], self.plan_ms))
            self.plan_ms = TIMES_MS[min(max(nearest + way, 0), len(TIMES_MS) - 1)]
            return
        value = known[name]
        changes: dict[str, Any]
        if name == "cost":
            changes = {name: COSTS[(COSTS.index(value) + way) % len(COSTS)]}
        elif name == "std":  # and with it the spread of a warm start
            spreads = [spread for spread in ("std", "std_warm") if spread in known]
            changes = {spread: round(known[spread] * SPREAD_STEP**way, 3) for spread in spreads}
        elif name == "candidates":
            changes = {name: value * 2 if up else value // 2}
        else:
            changes = {name: value + way}
        planner: Any = self.planner
        changed = dataclasses.replace(planner, **changes)
        assert self._model is not None
        check_fit(self._model, changed)
        self._planners[0] = changed

    @property
    def _names(self) -> list[str]:
        known = planning.settings_of(self.planner)
        return [name for name in SETTINGS if name in known] + [TIME]


def available_planners(agent: Agent) -> list[Planner]:
    """The planners that a person can switch between: the agent's own, then the others that its model allows."""
    if agent.model is None or agent.planner is None:
        return []
    names = [name for name in planning.PLANNERS if name != agent.planner.name]
    others = [_tuned(agent.model, name) for name in names]
    return [agent.planner, *(one for one in others if agent.model.proposes or not one.needs_proposals)]


def _tuned(model: WorldModel, name: str) -> Planner:
    """The planner `name` as it was tuned for the model: by its file, or by the recipe that model files come from."""
    settings: dict[str, Any] = {}
    if model.sha256 is not None and model.planner.get("name") != name:
        try:
            settings = recipes.read(model.task)["measure"].get("planners", {}).get(name, {})
        except BadInput:  # a recipe of one's own that is not finished
            settings = {}
    return planning.make_for(model, name, [f"{key}={json.dumps(value)}" for key, value in settings.items()])


def _gap(one: float | None, other: float | None) -> float:
    """How far apart two times for a plan are; None is no limit."""
    return abs((1e6 if one is None else one) - (1e6 if other is None else other))


def _words(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
