"""Edits of a world-model file's bytes, and the sentence with which a bad one is refused."""

import json
from collections.abc import Callable
from typing import Any

import onnx
import pytest

from agent.world_models import file as model_file
from envs.errors import BadInput


def edited(content: bytes, edit: Callable[[onnx.ModelProto], Any]) -> bytes:
    """`content` after `edit(model)`, with a fresh seal."""
    model = onnx.ModelProto.FromString(content)
    del model.metadata_props[1:]
    edit(model)
    return model_file.seal(model.SerializeToString())


def described(content: bytes, **changes: Any) -> bytes:
    """`content` with other metadata, freshly sealed; a value of None takes the entry out."""

    def edit(model: onnx.ModelProto) -> None:
        values = json.loads(model.metadata_props[0].value) | changes
        model.metadata_props[0].value = json.dumps({k: v for k, v in values.items() if v is not None})

    return edited(content, edit)


def before_1_2(content: bytes) -> bytes:
    """`content` as it was written before files had rollouts of a single block."""

    def edit(model: onnx.ModelProto) -> None:
        for values in (model.graph.node, model.graph.output):
            for value in [each for each in values if each.name.startswith("next_latent_")]:
                values.remove(value)

    return edited(described(content, one_block=None, format="1.1"), edit)


def refusal(content: bytes) -> str:
    """The sentence with which `content` is refused."""
    with pytest.raises(BadInput) as refused:
        model_file.parse_file(content)
    assert "\n" not in str(refused.value)
    return str(refused.value)
