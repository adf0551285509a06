"""Every planner by name: adding one is a file here and a line in `PLANNERS`.

One that samples candidates inherits `SamplingPlanner` and writes its search as a generator that reads like the
algorithm. Wrong names and settings are a ValueError of one sentence.
"""

import dataclasses
import importlib
import json
from collections.abc import Sequence
from typing import Any

from agent.planning.base import Plan, Planner, Problem, check_horizon
from agent.world_models.base import WorldModel

PLANNERS = {
    "cem": "agent.planning.cem:CEM",
    "guided": "agent.planning.proposals:Guided",
    "lewm": "agent.planning.lewm:LeWM",
    "mppi": "agent.planning.mppi:MPPI",
    "propose": "agent.planning.proposals:Propose",
    "shooting": "agent.planning.shooting:Shooting",
}
"""Name on the command line to `module:Class`."""
DEFAULT = "cem"


def make(name: str, **settings: Any) -> Planner:
    """The planner called `name` with some of its settings changed."""
    if name not in PLANNERS:
        raise ValueError(f"unknown planner '{name}': choose one of {', '.join(PLANNERS)}")
    module, attribute = PLANNERS[name].split(":")
    factory = getattr(importlib.import_module(module), attribute)
    known = {field.name for field in dataclasses.fields(factory())}
    if unknown := sorted(set(settings) - known):
        raise ValueError(f"planner {name} has no setting '{unknown[0]}': it has {', '.join(sorted(known))}")
    return factory(**settings)


def make_for(model: WorldModel, name: str | None = None, assignments: Sequence[str] = ()) -> Planner:
    """The planner that `model` was tuned for, unless `name` asks for another, with `key=value` settings changed.

    A model that has been tuned carries `planner`, a mapping of the planner's `name` and its settings. Nobody has to
    know how far a model can look: a planner's own horizon gives way to the model's.
    """
    tuned = dict(model.planner)
    default = tuned.pop("name", DEFAULT)
    settings = (tuned if name in (None, default) else {}) | parse_settings(assignments)
    planner: Any = make(name or default, **settings)
    if "horizon" not in settings and planner.horizon > model.horizon:
        return dataclasses.replace(planner, horizon=model.horizon, replan=min(planner.replan, model.horizon))
    check_horizon(planner, model)
    return planner


def parse_settings(assignments: Sequence[str]) -> dict[str, Any]:
    """Settings written as `key=value`."""
    settings = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not (key and equals and value):
            raise ValueError(
                f"a planner's setting is written key=value, for example candidates=200, not '{assignment}'"
            )
        try:
            settings[key] = json.loads(value)
        except json.JSONDecodeError:
            settings[key] = value
    return settings


def settings_of(planner: Any) -> dict[str, Any]:
    """A planner's name and settings, as they are logged."""
    return {"name": planner.name, **dataclasses.asdict(planner)}


__all__ = ["DEFAULT", "PLANNERS", "Plan", "Planner", "Problem", "make", "make_for", "parse_settings", "settings_of"]
