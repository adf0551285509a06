"""The weights in a world-model file, put back into the kind of network that they were exported from.

If the norms that it folds do nothing, the exporter only copies, scales and shifts weights: each number in a file is
`scale * weight + shift` of one weight. Three exports of a network with known weights tell which one, and both numbers.
"""

import dataclasses
from typing import Any

import numpy as np
import torch
from onnx import GraphProto, TensorProto, numpy_helper
from torch import Tensor, nn

import models
from agent.world_models.file import ModelFile
from agent.world_models.file.graph import dependencies
from agent.world_models.file.metadata import SINCE, Metadata
from envs.errors import BadInput
from export.package import to_onnx
from export.source import Source
from models.vit import ViT


@torch.no_grad()
def recover(file: ModelFile) -> Source:
    """The network in a file; one that would not be exported as the same graph with the same weights is refused."""
    about = dataclasses.replace(file.metadata, one_block=True, format=SINCE["one_block"])  # as the reader completes it
    source = _new_network(file)
    network = nn.ModuleList(part for part in (source.model, source.proposals) if part is not None).double()
    weights = _make_neutral(network)
    sizes = [weight.numel() for weight in weights]

    def exported(values: Tensor) -> GraphProto:
        for weight, part in zip(weights, values.split(sizes), strict=True):
            weight.copy_(part.view_as(weight))
        if source.proposals is not None:  # a file has 1 / std and -mean / std of their latents
            source.proposals.latent_mean /= -source.proposals.latent_std
            source.proposals.latent_std.reciprocal_()
        return to_onnx(source, about, np.float64).graph

    known, index = torch.linspace(1, 2, sum(sizes), dtype=torch.float64), torch.arange(sum(sizes))
    template = exported(known)
    theirs = _matched(template, file.model.graph)
    twice, indexed = _arrays(exported(2 * known)), _arrays(exported(index * known))
    found = torch.zeros_like(known)  # a weight that the exporter leaves out has no effect
    for name, value in _arrays(template).items():
        scaled = twice[name] - value
        if scaled.all():  # else it is a constant
            shift = value - scaled
            which = torch.from_numpy(np.rint((indexed[name] - shift) / scaled)).long()
            found[which] = known[which] * torch.from_numpy((theirs[name] - shift) / scaled)
    exported(found)
    network.float()
    _check(source, about, file.model.graph)
    return source


def _check(source: Source, about: Metadata, graph: GraphProto) -> None:
    """Refuse a network whose export is not `graph`, to within the rounding of its precision."""
    half = any(weight.data_type == TensorProto.FLOAT16 for weight in graph.initializer)
    precision = np.float16 if half else np.float32
    again, near = to_onnx(source, about, precision).graph, 4 * np.finfo(precision).eps
    theirs = _matched(again, graph)
    if not all(np.allclose(weight, theirs[name], near, near) for name, weight in _arrays(again).items()):
        raise BadInput("some of its weights cannot be those of the network that its metadata describes")


def _new_network(file: ModelFile) -> Source:
    """The kind of network that a file says it holds, with new weights."""
    about = file.metadata
    try:
        model = models.build(about.preset, about.action_dim, **about.network)
        proposals = models.Proposals(**proposal_sizes(file)) if about.proposals else None
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise BadInput(f"its metadata describes a network that cannot be built ({error})") from error
    sizes = model.image_size, model.latent, model.history, model.action_block
    if sizes != (about.image_size, about.latent_size, about.history, about.action_block):
        raise BadInput("its metadata describes a network of other sizes than its own")
    model.set_action_scale(torch.tensor(about.action_mean), torch.tensor(about.action_std))
    known = ("task", "look", "preset", "network", "objective", "data", "steps", "seed", "versions")
    return Source(model=model, proposals=proposals, **{name: getattr(about, name) for name in known})


def proposal_sizes(file: ModelFile) -> dict[str, int]:
    """Settings of the proposals in a file, as their graph shows them: each hidden layer has a norm."""
    about, graph = file.metadata, file.model.graph
    norms = [node for node in dependencies(graph.node, "proposals") if node.op_type == "LayerNormalization"]
    shapes = {weight.name: weight.dims for weight in graph.initializer}
    sizes = {"latent": about.latent_size, "action_size": about.action_dim * about.action_block}
    return sizes | {"components": about.proposals, "width": shapes[norms[0].input[1]][0], "depth": len(norms)}


def _make_neutral(network: nn.Module) -> list[Tensor]:
    """Let what the exporter folds into other weights do nothing; returns the weights that are left."""
    free: list[Tensor] = list(network.parameters())
    folded: list[Tensor] = []
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.reset_parameters()
            assert module.running_var is not None
            module.running_var -= module.eps
            # The convolutions have no bias: that of the norm stands for it.
            folded += [module.weight, module.bias] if isinstance(module, nn.BatchNorm1d) else [module.weight]
        elif isinstance(module, ViT):
            folded.append(module.class_token.zero_())
        elif isinstance(module, models.Proposals):
            free += module.buffers()
    return [weight for weight in free if not any(weight is other for other in folded)]


def _matched(ours: GraphProto, theirs: GraphProto) -> dict[str, np.ndarray]:
    """Their weights under our names; refuses a graph that does something else with its weights."""
    (steps, values), (their_steps, their_values), found = _read(ours), _read(theirs), _arrays(theirs)
    names = {value.name: value.name for value in ours.input}
    same = steps == their_steps and all(
        names.setdefault(value, other) == other for value, other in zip(values, their_values, strict=True)
    )
    if not same or not found.keys() <= set(names.values()):
        raise BadInput("its graph is not the one that this program writes for the network that its metadata describes")
    return {weight.name: found[names[weight.name]] for weight in ours.initializer}


def _read(graph: GraphProto) -> tuple[list[Any], list[str]]:
    """What each node does with weights of which shapes, and the names of all values; precision does not count."""
    shapes = {weight.name: list(weight.dims) for weight in graph.initializer}
    steps: list[Any] = []
    values: list[str] = []
    origin: dict[str, str] = {}
    for node in graph.node:
        inputs = [origin.get(name, name) for name in node.input]
        if node.op_type in ("Cast", "Identity"):
            origin[node.output[0]] = inputs[0]
            continue
        attributes = [attribute.SerializeToString(deterministic=True) for attribute in node.attribute]
        steps.append((node.op_type, attributes, [shapes.get(name) for name in inputs], len(node.output)))
        values += [*inputs, *node.output]
    return steps, values + [origin.get(output.name, output.name) for output in graph.output]


def _arrays(graph: GraphProto) -> dict[str, np.ndarray]:
    return {weight.name: numpy_helper.to_array(weight) for weight in graph.initializer}
