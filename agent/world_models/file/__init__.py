"""Reading and writing world-model files: one ONNX graph, its metadata, and a seal over both.

A file ends in a metadata property `sha256` over all bytes before it: damage is noticed before anything is parsed.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from agent.world_models.file import graph, old_files, wire
from agent.world_models.file.budget import Work, most_rows
from agent.world_models.file.interface import interface, one_block_outputs
from agent.world_models.file.metadata import KEY, Metadata
from envs.errors import BadInput

MAX_BYTES = 128 * 1024**2
SEAL = "sha256"


@dataclass(frozen=True)
class ModelFile:
    """A world-model file that has been read and found sound."""

    metadata: Metadata
    sha256: str
    """Of the whole file, in hexadecimal digits."""
    model: onnx.ModelProto
    work: dict[str, Work]
    """What a row of each output takes."""
    most_rows: dict[str, int]
    """How many rows of each output may be computed in one call."""


def write(model: onnx.ModelProto, metadata: Metadata) -> bytes:
    """The bytes of a world-model file; the same model and metadata give the same bytes."""
    sealed = onnx.ModelProto()
    sealed.CopyFrom(model)
    sealed.metadata_props.add(key=KEY, value=metadata.to_json())
    return seal(sealed.SerializeToString(deterministic=True))


def seal(content: bytes) -> bytes:
    """`content`, a serialised ONNX model, with a property at its end that holds its SHA-256."""
    return content + _seal(hashlib.sha256(content).hexdigest())


def _seal(digest: str) -> bytes:
    # Serialised messages that follow each other merge: these bytes add one property to the model before them.
    return onnx.ModelProto(metadata_props=[onnx.StringStringEntryProto(key=SEAL, value=digest)]).SerializeToString()


def read(path: str | Path) -> ModelFile:
    """The world-model file at `path`; anything else is refused in one sentence."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadInput(f"it has more than {MAX_BYTES // 1024**2} MB")
        return parse_file(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot read the model {_printable(path)}: {error.strerror}") from error
    except BadInput as error:
        raise BadInput(f"{_printable(path)} is not a usable world model: {error}") from error


def _printable(path: Path) -> str:
    """A path as people read it, whatever characters are in the name of the file."""
    return str(path) if str(path).isprintable() else repr(str(path))


def parse_file(content: bytes) -> ModelFile:
    """The world model in `content`, the bytes of a file."""
    tail = len(_seal("0" * 64))
    digest = hashlib.sha256(memoryview(content)[:-tail])
    if content[-tail:] != _seal(digest.hexdigest()):
        raise BadInput("its checksum is missing or wrong, so it is another kind of file, cut off, or damaged")
    digest.update(content[-tail:])
    wire.check(content)
    try:
        model = onnx.ModelProto.FromString(content)
        described = [entry.value for entry in model.metadata_props if entry.key == KEY]
    except (DecodeError, UnicodeDecodeError):
        raise BadInput("it is not an ONNX file") from None
    if len(described) != 1:
        raise BadInput(f"it is an ONNX file without the metadata entry '{KEY}' that a world model has")
    metadata = Metadata.from_json(described[0])
    weights = graph.read_weights(model.graph.initializer)
    work = graph.check(model, metadata, weights)
    if not metadata.one_block:
        work |= old_files.add_one_block(model, metadata, weights)
    inputs, outputs = interface(metadata)
    rows = most_rows(inputs, outputs | one_block_outputs(metadata), work)
    return ModelFile(metadata, digest.hexdigest(), model, work, rows)
