"""A network and what is known about it, packed into the bytes of a world-model file."""

import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from agent.world_models import file as model_file
from agent.world_models.file.metadata import SINCE, Metadata
from export import rollout
from export.graph import Graph
from export.networks import emit_encode, emit_proposals
from export.source import Source
from models import Proposals, WorldModel


def package(source: Source, horizon: int, dtype: type[np.floating], planner: dict[str, Any], licence: str) -> bytes:
    """The world-model file of `source`; the same source gives the same bytes."""
    model, proposals = source.model, source.proposals
    metadata = Metadata(
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
        format=SINCE["proposals"] if proposals else "1.0",
    )
    return model_file.write(to_onnx(model, horizon, dtype, proposals), metadata)


def to_onnx(
    model: WorldModel, horizon: int, dtype: type[np.floating] = np.float32, proposals: Proposals | None = None
) -> ModelProto:
    """The graph of `model`: `latent` of `pixels`, and `latents_c` of the last c latents of `context`, for c up to h.

    With `proposals` also those from `start` to `goal`.
    """
    model = model.eval()
    block = model.action_block * model.action_dim
    size, lengths = model.image_size, range(1, model.history + 1)
    graph = Graph(dtype)
    graph.leave(emit_encode(model, graph, "pixels"), "latent")
    context, past_actions, actions = (graph.enter(name) for name in ("context", "past_actions", "actions"))
    rollouts = rollout.write(model, graph, context, past_actions, actions, horizon)
    for length in lengths:
        graph.leave(rollouts.latents(length), f"latents_{length}")
    info = helper.make_tensor_value_info
    inputs = [
        info("pixels", TensorProto.UINT8, ["B", size, size, 3]),
        info("context", TensorProto.FLOAT, ["C", model.history, model.latent]),
        info("past_actions", TensorProto.FLOAT, ["C", model.history - 1, block]),
        info("actions", TensorProto.FLOAT, ["N", horizon, block]),
    ]
    outputs = [
        info("latent", TensorProto.FLOAT, ["B", model.latent]),
        *(info(f"latents_{length}", TensorProto.FLOAT, ["N", horizon, model.latent]) for length in lengths),
    ]
    if proposals is not None:
        sizes = {"start": model.latent, "goal": model.latent, "blocks_left": 1}
        inputs += [info(name, TensorProto.FLOAT, ["P", size]) for name, size in sizes.items()]
        outputs.append(info("proposals", TensorProto.FLOAT, ["P", proposals.components, 1 + 2 * block]))
        graph.leave(emit_proposals(proposals.eval(), graph, *map(graph.enter, sizes)), "proposals")
    return graph.model(inputs, outputs)


def revision() -> str:
    """Git revision of this code, if it is a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        said = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
        return said.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
