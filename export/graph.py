"""A graph under construction: ONNX nodes and weights, appended one by one."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor

from agent.world_models.file.interface import assemble
from agent.world_models.file.metadata import Metadata


class Graph:
    """Collects nodes and weights; values are named by strings.

    Equal weights are stored once, and the same operator on the same values is computed once. `dtype` is what the graph
    computes in, float32 or float16. The same calls in the same order give the same bytes.
    """

    def __init__(self, dtype: type[np.floating] = np.float32):
        self.dtype = np.dtype(dtype)
        self._nodes: list[onnx.NodeProto] = []
        self._done: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
        self._weights: dict[str, np.ndarray] = {}
        self._stored: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._seen: dict[int, tuple[Tensor, str]] = {}  # holds the tensors, so that no other gets their id

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Append a node of this kind and return the name of its output."""
        return self.ops(kind, *inputs, outputs=1, **attributes)[0]

    def ops(self, kind: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """Append a node with several outputs and return their names."""
        key = (kind, inputs, repr(attributes))
        if key not in self._done:
            stem = f"{kind.lower()}_{len(self._nodes)}"
            names = [stem] if outputs == 1 else [f"{stem}_{index}" for index in range(outputs)]
            self._nodes.append(helper.make_node(kind, inputs, names, name=stem, **attributes))
            self._done[key] = names
        return self._done[key]

    def weight(self, values: Tensor | np.ndarray | float) -> str:
        """Store numbers in the graph's precision and return their name."""
        if not isinstance(values, Tensor):
            return self._store("weight", np.ascontiguousarray(values, self.dtype))
        if id(values) not in self._seen:
            array = np.ascontiguousarray(values.detach().cpu().numpy(), self.dtype)
            self._seen[id(values)] = values, self._store("weight", array)
        return self._seen[id(values)][1]

    def indices(self, *values: int) -> str:
        """Store whole numbers, as a shape or a list of axes, and return their name."""
        return self._store("indices", np.array(values, np.int64))

    def index(self, value: int) -> str:
        """Store one whole number and return its name."""
        return self._store("indices", np.array(value, np.int64))

    def _store(self, kind: str, array: np.ndarray) -> str:
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._stored:
            self._stored[key] = f"{kind}_{len(self._stored)}"
            self._weights[self._stored[key]] = array
        return self._stored[key]

    def enter(self, name: str) -> str:
        """A float32 input in the precision that the graph computes in."""
        return name if self.dtype == np.float32 else self.op("Cast", name, to=TensorProto.FLOAT16)

    def leave(self, value: str, name: str) -> None:
        """Give `value` the public name `name`, in float32 whatever the graph computes in."""
        same = self.dtype == np.float32
        node = helper.make_node("Identity" if same else "Cast", [value], [name], name=name)
        if not same:
            node.attribute.append(helper.make_attribute("to", TensorProto.FLOAT))
        self._nodes.append(node)

    def model(self, about: Metadata) -> onnx.ModelProto:
        """The finished model, with the inputs and outputs of a file with this metadata."""
        weights = [numpy_helper.from_array(array, name) for name, array in self._weights.items()]
        return assemble(self._nodes, weights, about)
