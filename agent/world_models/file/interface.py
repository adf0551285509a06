"""What goes into the graph of a world-model file and what comes out: names, types, shapes and ONNX versions.

Writer and reader both take them from here.
"""

from collections.abc import Iterable, Sequence

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from agent.world_models.file.metadata import Metadata

OPSET = 20
IR_VERSION = 10
"""What is written; older ones are read too."""
IR_VERSIONS = (8, 9, IR_VERSION)
PRODUCER = "qqworld"

Dims = list[str | int]
Values = dict[str, tuple[int, Dims]]
"""Type and shape by name; an axis whose size a caller chooses has a letter."""


def interface(about: Metadata) -> tuple[Values, Values]:
    """Inputs and outputs of a file with this metadata.

    `latents_c` is the rollout that reads the last c latents of `context` and the blocks between them. `proposals`, if a
    file has any, holds the weight, the mean and the spread of each Gaussian. `next_latent_c` is the first latent of
    `latents_c`, computed alone; files before format 1.2 do not have it.
    """
    block, size, latent = about.action_dim * about.action_block, about.image_size, about.latent_size
    inputs: Values = {
        "pixels": (TensorProto.UINT8, ["B", size, size, 3]),
        "context": (TensorProto.FLOAT, ["C", about.history, latent]),
        "past_actions": (TensorProto.FLOAT, ["C", about.history - 1, block]),
        "actions": (TensorProto.FLOAT, ["N", about.horizon, block]),
    }
    outputs: Values = {"latent": (TensorProto.FLOAT, ["B", latent])}
    for length in range(1, about.history + 1):
        outputs[f"latents_{length}"] = TensorProto.FLOAT, ["N", about.horizon, latent]
    if about.proposals:
        inputs |= {name: (TensorProto.FLOAT, ["P", latent]) for name in ("start", "goal")}
        inputs["blocks_left"] = TensorProto.FLOAT, ["P", 1]
        outputs["proposals"] = TensorProto.FLOAT, ["P", about.proposals, 1 + 2 * block]
    if about.one_block:
        outputs |= one_block_outputs(about)
    return inputs, outputs


def one_block_outputs(about: Metadata) -> Values:
    """The outputs `next_latent_c`."""
    described: tuple[int, Dims] = TensorProto.FLOAT, ["N", 1, about.latent_size]
    return {f"next_latent_{length}": described for length in range(1, about.history + 1)}


def assemble(nodes: Sequence[NodeProto], weights: Sequence[TensorProto], about: Metadata) -> ModelProto:
    """The model of a file with this metadata, made of these nodes and weights."""
    inputs, outputs = map(value_infos, interface(about))
    return helper.make_model(
        helper.make_graph(nodes, PRODUCER, inputs, outputs, weights),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name=PRODUCER,
    )


def value_infos(values: Values) -> list[ValueInfoProto]:
    """Inputs or outputs as ONNX declares them."""
    return [helper.make_tensor_value_info(name, kind, dims) for name, (kind, dims) in values.items()]


def declared(values: Iterable[ValueInfoProto]) -> Values:
    """Inputs or outputs that a graph declares."""
    types = {value.name: value.type.tensor_type for value in values}
    return {
        name: (kind.elem_type, [dim.dim_param or dim.dim_value for dim in kind.shape.dim])
        for name, kind in types.items()
    }
