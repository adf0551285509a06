"""From names on a command line to world models, planners, agents and tasks."""

from collections.abc import Sequence
from typing import cast

import envs
from agent import planning
from agent.episodes.agents import Agent, ModelAgent, PlanningAgent
from agent.episodes.baselines import RuleAgent
from agent.episodes.realtime import RealtimeAgent
from agent.episodes.replay import ReplayAgent
from agent.episodes.sequence import StoppableModel
from agent.episodes.settings import EpisodeSettings
from agent.planning.base import Planner
from agent.world_models import registry
from agent.world_models.base import WorldModel
from envs import BadInput, Task


def make_agent(settings: EpisodeSettings, model: str, rule: str | None = None) -> Agent:
    """Acts by a `rule`, or plans with the `model` that `registry.load` finds, which can be stopped in mid-plan."""
    if rule is not None:
        return RuleAgent(rule)
    stoppable = cast(WorldModel, StoppableModel(load_model(settings, model)))  # the rest is passed on
    return make_planning_agent(settings, stoppable)


def make_replay_agent(settings: EpisodeSettings, model: str) -> ReplayAgent:
    """Carries out logged actions, and plans beside them with the `model` that `registry.load` finds."""
    stoppable = cast(WorldModel, StoppableModel(load_model(settings, model)))
    return ReplayAgent(stoppable, make_planner(stoppable, settings.planner, settings.plan), settings.plan_ms)


def load_model(settings: EpisodeSettings, name: str, threads: int | None = None) -> WorldModel:
    """The world model that `registry.load` finds by its name."""
    return registry.load(name, settings.env, settings.device, threads)


def make_planning_agent(settings: EpisodeSettings, model: WorldModel) -> PlanningAgent:
    """Plans with `model` in lockstep or in real time."""
    kind = RealtimeAgent if settings.realtime else ModelAgent
    return kind(model, make_planner(model, settings.planner, settings.plan), settings.plan_ms)


def make_planner(model: WorldModel, name: str | None = None, assignments: Sequence[str] = ()) -> Planner:
    """The planner that `model` was tuned for, or the one called `name`, with `key=value` settings changed."""
    try:
        return planning.make_for(model, name, assignments)
    except ValueError as error:
        raise BadInput(str(error)) from error


def make_task(name: str, model: WorldModel | None) -> Task:
    """The task called `name`, drawn as `model` wants to see it."""
    return envs.make(name) if model is None else envs.make(name, size=model.image_size, look=model.look)
