"""From names on a command line to an agent, and from an agent to the playback that it plays on."""

from collections.abc import Sequence
from typing import Any

import envs
from agent import planning as planners
from agent.episodes import goals
from agent.episodes.agents import ModelAgent, RuleAgent
from agent.episodes.realtime import RealtimeAgent
from agent.episodes.sequence import EpisodeSequence, Settings, StoppableModel
from agent.viewer.frame import FrameRenderer
from agent.viewer.latent_images import imagine
from agent.viewer.threads import Playback
from agent.world_models import registry as world_model


def make_agent(
    task: str,
    model: str,
    rule: str | None = None,
    planner: str | None = None,
    plan: Sequence[str] = (),
    plan_ms: float | None = None,
    realtime: bool = False,
    device: str = "auto",
) -> Any:
    """An agent that plans with the `model` that `world_model.load` finds, or acts by a `rule`."""
    if rule is not None:
        return RuleAgent(rule)
    loaded = world_model.load(model, task, device)
    stoppable: Any = StoppableModel(loaded)
    kind = RealtimeAgent if realtime else ModelAgent
    return kind(stoppable, planners.make_for(loaded, planner, plan), plan_ms)


def make_playback(task: str, agent: Any, goal: str = "pair", settings: Settings | None = None) -> Playback:
    """The playback for an agent, with a task drawn as its model wants to see it; `goal` is what `--goal` takes."""
    model = getattr(agent, "model", None)
    world = envs.make(task, size=model.image_size, look=model.look) if model else envs.make(task)
    source = goals.parse(goal, world)
    world.close()  # who plays may draw in another thread
    renderer = FrameRenderer(task, agent, imagine(model), source)
    return Playback(EpisodeSequence(world, agent, source, settings or Settings()), renderer)
