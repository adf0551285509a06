"""Files before format 1.2 have no rollouts of a single block: they are cut out of the long ones here.

Nothing else changes a graph. When no such file is in use any more, this module goes.
"""

import numpy as np
from onnx import ModelProto, NodeProto

from agent.world_models.file.budget import Work
from agent.world_models.file.graph import ONE, dependencies, known_inputs, measure_nodes, trace
from agent.world_models.file.interface import one_block_outputs, value_infos
from agent.world_models.file.metadata import Metadata
from agent.world_models.file.operators import Value


def add_one_block(model: ModelProto, about: Metadata, weights: dict[str, Value]) -> dict[str, Work]:
    """Give a `model` that has been checked the outputs `next_latent_c`; returns what each of them takes.

    A rollout that is not a row of latents joined at the end gets none.
    """
    nodes = list(model.graph.node)
    gives = {name: node for node in nodes for name in node.output}
    takes = {}
    for length, (output, described) in enumerate(one_block_outputs(about).items(), start=1):
        node = _first_latent(gives, f"latents_{length}", output)
        if node is None or output in gives:
            continue
        part, known = dependencies([*nodes, node], output), known_inputs(about) | weights
        trace(part, known)
        value = known[output]
        if value.shape == (1, 1, about.latent_size) and value.rows == "N" and value.dtype == np.float32:
            model.graph.node.append(node)
            model.graph.output.extend(value_infos({output: described}))
            takes[output] = measure_nodes(part, output, known, weights, ONE)
    return takes


def _first_latent(gives: dict[str, NodeProto], rollout: str, output: str) -> NodeProto | None:
    """A node that gives the first of the latents that `rollout` joins, under the name `output`."""
    last = gives.get(rollout)
    joined = gives.get(last.input[0]) if last is not None and last.op_type in ("Identity", "Cast") else None
    if last is None or joined is None or joined.op_type != "Concat":
        return None
    return NodeProto(op_type=last.op_type, input=joined.input[:1], output=[output], attribute=last.attribute)
