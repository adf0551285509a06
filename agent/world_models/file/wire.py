"""The part of ONNX's wire format that a world-model file may use, checked before anything is built from it.

A protocol-buffer parser builds whatever a file describes: a few megabytes can describe gigabytes of small objects,
graphs inside attributes, or weights in other files. This walk over the raw bytes builds nothing. It accepts the fields
that our writer writes and no others, so that control flow, functions, custom domains and external data cannot occur.
"""

import re

from envs.errors import BadInput

MAX_FIELDS = 400_000
MAX_TEXT = 64 * 1024
NAME = re.compile(rb"[\w.-]{0,128}")

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
NUMBER, FLOAT, NAMED, TEXT, DATA = "number", "float", "name", "text", "data"
WIRE_TYPE = {NUMBER: VARINT, FLOAT: FIXED32}

GRAMMAR: dict[str, dict[int, str]] = {
    "model": {1: NUMBER, 2: NAMED, 7: "graph", 8: "opset", 14: "property"},
    "opset": {1: NAMED, 2: NUMBER},
    "property": {1: NAMED, 2: TEXT},
    "graph": {1: "node", 2: NAMED, 5: "tensor", 11: "value", 12: "value"},
    "node": {1: NAMED, 2: NAMED, 3: NAMED, 4: NAMED, 5: "attribute"},
    "attribute": {1: NAMED, 2: FLOAT, 3: NUMBER, 8: NUMBER, 20: NUMBER},
    "tensor": {1: NUMBER, 2: NUMBER, 8: NAMED, 9: DATA},
    "value": {1: NAMED, 2: "type"},
    "type": {1: "tensor type"},
    "tensor type": {1: NUMBER, 2: "shape"},
    "shape": {1: "dimension"},
    "dimension": {1: NUMBER, 2: NAMED},
}
"""Message to field number to what the field holds: a plain kind, or a message of its own."""


def check(content: bytes) -> None:
    """Refuse bytes that are not a model in this grammar."""
    _Walk(content).message("model", 0, len(content))


class _Walk:
    def __init__(self, content: bytes):
        self.content, self.fields = content, 0

    def message(self, name: str, position: int, end: int) -> None:
        """Walk the fields of one message, which fills the bytes from `position` to `end`."""
        fields = GRAMMAR[name]
        while position < end:
            self.fields += 1
            if self.fields > MAX_FIELDS:
                raise BadInput(f"it has more than {MAX_FIELDS:,} fields")
            tag, position = self.varint(position, end)
            kind = fields.get(tag >> 3)
            if kind is None or tag & 7 != WIRE_TYPE.get(kind, BYTES):
                raise BadInput(f"it has something that world-model files do not have (field {tag >> 3} in a {name})")
            if kind == NUMBER:
                _, position = self.varint(position, end)
            elif kind == FLOAT:
                position += 4
            else:
                length, start = self.varint(position, end)
                position = start + length
                if position <= end:
                    self.bytes(kind, name, start, position)
            if position > end:
                raise BadInput(f"a {name} in it is cut off")

    def bytes(self, kind: str, message: str, start: int, end: int) -> None:
        """Check one field that holds a length and that many bytes."""
        if kind == NAMED:
            if not NAME.fullmatch(self.content, start, end):
                raise BadInput(f"a {message} in it has a name that is too long or has odd characters")
        elif kind == TEXT:
            if end - start > MAX_TEXT:
                raise BadInput(f"its metadata has {end - start:,} bytes, more than the {MAX_TEXT:,} allowed")
        elif kind != DATA:
            self.message(kind, start, end)

    def varint(self, position: int, end: int) -> tuple[int, int]:
        """A whole number in base 128, least digit first, and the position after it."""
        value = shift = 0
        while position < end and shift < 70:
            byte = self.content[position]
            value |= (byte & 127) << shift
            position += 1
            if byte < 128:
                return value, position
            shift += 7
        raise BadInput("a number in it is cut off")
