"""The dataset format: names, types and shapes of columns, and names of attributes. Everything else asks this file.

Rows of all episodes follow one another. Row t holds the picture, the state and the action (or `frame_skip` actions in a
row) taken from it; the row that no action leaves holds NaN. Episode e is the `ep_len[e]` rows from `ep_offset[e]` on; a
length of 0 marks an episode that is still to be collected. Published files of LeWM and stable-worldmodel have the same
columns (`proprio`, `ep_idx` and `step_idx` are not read here) and no attributes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal, NamedTuple, get_args

Look = Literal["fast", "paper"]
"""How a task is drawn: for compact models, or as published."""


class Column(NamedTuple):
    """A column of the file."""

    name: str
    dtype: str
    """Type in files of ours."""
    axes: int
    kinds: str
    """Numpy kinds that are read, because published files may have another width; pictures are uint8 everywhere."""


PIXELS = Column("pixels", "|u1", 4, "u")
ACTION = Column("action", "<f4", 2, "f")
STATE = Column("state", "<f8", 2, "f")
PROPRIO = Column("proprio", "<f4", 2, "f")
EPISODE = Column("ep_idx", "<i8", 1, "iu")
STEP = Column("step_idx", "<i8", 1, "iu")
OFFSET = Column("ep_offset", "<i8", 1, "iu")
LENGTH = Column("ep_len", "<i8", 1, "iu")


@dataclass(frozen=True)
class Layout:
    """How large a dataset is: episodes of `rows` rows, one picture, one action row and one state each."""

    episodes: int
    rows: int
    size: int
    action: int
    state: int
    proprio: int

    def shapes(self) -> dict[Column, tuple[int, ...]]:
        """The shape of every column, in the order in which they lie in the file."""
        total = self.episodes * self.rows
        return {
            PIXELS: (total, self.size, self.size, 3),
            ACTION: (total, self.action),
            STATE: (total, self.state),
            PROPRIO: (total, self.proprio),
            EPISODE: (total,),
            STEP: (total,),
            OFFSET: (self.episodes,),
            LENGTH: (self.episodes,),
        }


@dataclass(frozen=True)
class Attributes:
    """What a file says about itself, one attribute a field, in the order in which they are written.

    Equal attributes mean equal data. The defaults stand for what a published file does not say.
    """

    task: str | None = None
    seed: int | None = None
    episodes: int | None = None
    steps: int | None = None
    """Control steps of an episode."""
    frame_skip: int = 1
    """Control steps between two rows."""
    stray: float = 0.0
    stray_every: int = 1
    look: Look | None = None
    size: int | None = None
    action_dim: int | None = None
    action_names: Sequence[str] = ()
    state_names: Sequence[str] = ()
    control_hz: float | None = None
    gl: str | None = None
    """The library with which MuJoCo rendered."""
    collector: int | None = None
    """Version of the collector."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Libraries and their versions."""

    def stored(self) -> dict[str, Any]:
        """The attributes as the file holds them."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return values | {name: json.dumps(values[name], sort_keys=True) for name in AS_JSON}

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> "Attributes":
        """The attributes of a file from what it holds; ValueError or TypeError if that makes no sense."""
        return cls(**{each.name: _read(each, stored[each.name]) for each in fields(cls) if each.name in stored})


AS_JSON = ("action_names", "state_names", "versions")


def _read(attribute: Field, value: Any) -> Any:
    if attribute.name in AS_JSON:
        return json.loads(value)
    if attribute.name == "look" and value not in get_args(Look):
        raise ValueError(f"unknown look '{value}'")
    return type(attribute.default)(value) if isinstance(attribute.default, int | float) else value
