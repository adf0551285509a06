"""A network and what is known about it, packed into the bytes of a world-model file."""

import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from agent.world_models import file as model_file
from agent.world_models.file.metadata import SINCE, Metadata
from export import rollout
from export.graph import Graph
from export.networks import emit_encode, emit_proposals
from export.source import Source


def package(source: Source, horizon: int, dtype: type[np.floating], planner: dict[str, Any], licence: str) -> bytes:
    """The world-model file of `source`; the same source gives the same bytes."""
    about = describe(source, horizon, planner, licence)
    return model_file.write(to_onnx(source, about, dtype), about)


def describe(source: Source, horizon: int, planner: dict[str, Any], licence: str) -> Metadata:
    """What the file says about itself."""
    model, proposals = source.model, source.proposals
    return Metadata(
        task=source.task,
        image_size=model.image_size,
        look=source.look,
        action_dim=model.action_dim,
        action_low=[-1.0] * model.action_dim,
        action_high=[1.0] * model.action_dim,
        action_mean=model.action_mean.tolist(),
        action_std=model.action_std.tolist(),
        action_block=model.action_block,
        history=model.history,
        horizon=horizon,
        latent_size=model.latent,
        preset=source.preset,
        network=source.network,
        objective=source.objective,
        data=source.data,
        steps=source.steps,
        seed=source.seed,
        versions=source.versions | {"export_torch": version("torch"), "onnx": version("onnx")},
        revision=revision(),
        licence=licence,
        planner=planner,
        proposals=proposals.components if proposals else 0,
        one_block=True,
        format=SINCE["one_block"],
    )


def to_onnx(source: Source, about: Metadata, dtype: type[np.floating] = np.float32) -> ModelProto:
    """The graph of a file described by `about`, which computes in `dtype`; its outputs are those of `interface`."""
    model = source.model.eval()
    graph = Graph(dtype)
    graph.leave(emit_encode(model, graph, "pixels"), "latent")
    context, past_actions, actions = (graph.enter(name) for name in ("context", "past_actions", "actions"))
    rollouts = rollout.write(model, graph, context, past_actions, actions, about.horizon)
    next_latents = {}
    for length in range(1, about.history + 1):
        latents = rollouts.latents(length)
        graph.leave(graph.op("Concat", *latents, axis=1), f"latents_{length}")
        next_latents[f"next_latent_{length}"] = latents[0]
    if source.proposals is not None:
        inputs = (graph.enter(name) for name in ("start", "goal", "blocks_left"))
        graph.leave(emit_proposals(source.proposals.eval(), graph, *inputs), "proposals")
    for name, latent in next_latents.items():
        graph.leave(latent, name)
    return graph.model(about)


def revision() -> str:
    """Git revision of this code, if it is a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        said = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
        return said.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
