"""One budget of memory for a whole file: how many rows a call may have, and how many weights may be packed.

All entry points are counted, since each keeps its memory once it has been used. The runtime splits larger calls.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from onnx import helper

from agent.world_models.file.interface import Values
from envs.errors import BadInput

MAX_WEIGHT_BYTES = 384 * 1024**2
MAX_PICTURE_BYTES = 160 * 1024**2
MAX_ROW_BYTES = 544 * 1024**2
MAX_PACKED_BYTES = 640 * 1024**2
"""An entry point whose operators read more weights than this keeps no packed copies of them."""
MAX_ALL_PACKED_BYTES = 1024**3
"""Entry points that keep more than this together are closed, those used longest ago first."""
MAX_SHAPES = 8
"""Shapes of calls whose buffers an entry point keeps."""
MAX_PICTURES = 32
MAX_ROWS = 2048
ROWS = 16
"""Rows come in multiples of what a processor computes at once."""


@dataclass(frozen=True)
class Work:
    """What one call of an entry point takes."""

    multiply_adds: int
    values: int
    """Numbers that its operators give."""
    live_bytes: int
    """Most bytes of intermediate values at a time."""
    stored_bytes: int
    """Bytes of its weights."""
    weight_bytes: int
    """The same, counted once for each operator that reads them."""

    @property
    def packed_bytes(self) -> int:
        """Bytes of the packed copies that the operators keep of their weights; 0 if there would be too many."""
        return self.weight_bytes if self.weight_bytes <= MAX_PACKED_BYTES else 0


def most_rows(inputs: Values, outputs: Values, work: dict[str, Work]) -> dict[str, int]:
    """The most rows of one call of each entry point, which take `work` for one row; fewer than 16 are refused."""
    if sum(each.stored_bytes for each in work.values()) > MAX_WEIGHT_BYTES:
        raise BadInput("its weights would take too much memory")
    picture = _row_bytes("latent", inputs, outputs, work)
    row = sum(_row_bytes(output, inputs, outputs, work) for output in work if output != "latent")
    pictures = min(MAX_PICTURES, MAX_PICTURE_BYTES // picture)
    rows = min(MAX_ROWS, MAX_ROW_BYTES // row) // ROWS * ROWS
    if not pictures or not rows:
        raise BadInput("computing it would take too much memory")
    return {output: pictures if output == "latent" else rows for output in work}


def _row_bytes(output: str, inputs: Values, outputs: Values, work: dict[str, Work]) -> int:
    """Bytes of one row while it is computed, and in the buffers: inputs are kept twice, to see what has changed."""
    letters = READS[str(outputs[output][1][0])]
    read = _bytes(value for value in inputs.values() if value[1][0] in letters)
    return work[output].live_bytes + MAX_SHAPES * (2 * read + _bytes([outputs[output]]))


READS = {"B": {"B"}, "N": {"C", "N"}, "P": {"P"}}
"""Rows that an entry point gives, by their letter, to the rows that it may read."""


def _bytes(values: Iterable[tuple[int, list[str | int]]]) -> int:
    return sum(
        int(np.prod([dim for dim in dims if isinstance(dim, int)])) * helper.tensor_dtype_to_np_dtype(kind).itemsize
        for kind, dims in values
    )
