"""What a world-model file says about itself: one schema for the writer and the reader."""

import dataclasses
import json
import math
import re
import sys
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

from envs.errors import BadInput

KEY = "qqworld"
"""The metadata property that holds the JSON."""
FORMAT = "1.2"
"""major.minor: a new minor adds what old readers may ignore, a new major is not readable by them."""
SINCE = {"proposals": "1.1", "one_block": "1.2"}
"""Entries that a file may leave out, with the format that brought them; a file says the oldest that has all it uses."""
MAX_BYTES = 64 * 1024
RANGES = {
    "image_size": (8, 1024),
    "action_dim": (1, 64),
    "action_block": (1, 64),
    "history": (1, 16),
    "horizon": (1, 64),
    "latent_size": (1, 8192),
    "steps": (0, 10**12),
    "seed": (0, 2**63 - 1),
    "proposals": (0, 64),
}

Settings = dict[str, Any]


@dataclass(frozen=True)
class Metadata:
    """The `qqworld` property of a world-model file; sizes are those of `WorldModel`."""

    task: str
    """The task's name on the command line."""
    image_size: int
    look: Literal["fast", "paper"]
    """How the task draws the pictures."""
    action_dim: int
    action_low: list[float]
    action_high: list[float]
    action_mean: list[float]
    """Of the training data, for each number of an action."""
    action_std: list[float]
    action_block: int
    history: int
    horizon: int
    latent_size: int
    preset: str
    """Named network that the weights belong to."""
    network: Settings
    """Settings of the preset."""
    objective: str
    """What it was trained with."""
    data: str
    """Fingerprint of the training data."""
    steps: int
    """Training steps."""
    seed: int
    """Seed of the training run."""
    versions: Settings
    """Libraries that trained and exported it."""
    revision: str
    """Git revision of the code that exported it."""
    licence: str
    planner: Settings = field(default_factory=dict)
    """Name and settings of the planner it was tuned with, possibly none."""
    format: str = "1.0"
    proposals: int = 0
    """Gaussians that the entry point `proposals` mixes; 0 if the file has none."""
    one_block: bool = False
    """Whether the file has the entry points `next_latent_c`, rollouts of a single block."""

    def __post_init__(self) -> None:
        """Refuse values that no world model can have."""
        for part in dataclasses.fields(self):
            _check_type(part.name, getattr(self, part.name), part.type)
        for name, (low, high) in RANGES.items():
            if not low <= (value := getattr(self, name)) <= high:
                raise BadInput(f"its metadata has {name} {value}, which must lie from {low} to {high}")
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", self.task):
            raise BadInput(f"its metadata has task {self.task[:64]!r}, which cannot be the name of a task")
        for name in ("action_low", "action_high", "action_mean", "action_std"):
            if len(values := getattr(self, name)) != self.action_dim:
                raise BadInput(f"its metadata has {len(values)} numbers in {name}, but actions have {self.action_dim}")
        if not all(low < high for low, high in zip(self.action_low, self.action_high, strict=True)):
            raise BadInput("its metadata has an action_low that is not below its action_high")
        if not all(1e-6 <= std <= 1e6 for std in self.action_std):
            raise BadInput("its metadata has an action_std outside 1e-6 to 1e6")
        for name, since in SINCE.items():
            if getattr(self, name) and _minor(self.format) < _minor(since):
                raise BadInput(f"its metadata has {name}, which format {self.format} does not know")

    def to_json(self) -> str:
        """The text that goes into the file."""
        values = dataclasses.asdict(self)
        return json.dumps({name: v for name, v in values.items() if v or name not in SINCE}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Metadata":
        """The metadata in `text`; a newer minor version may say more, which is left out."""
        if len(text) > MAX_BYTES:
            raise BadInput(f"its metadata has {len(text):,} characters, more than the {MAX_BYTES:,} allowed")
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            raise BadInput("its metadata is not JSON") from None
        if not isinstance(values, dict):
            raise BadInput("its metadata is not a JSON object")
        newer = _is_newer(values.get("format"))
        names = {part.name for part in dataclasses.fields(cls)}
        if missing := sorted(names - set(values) - set(SINCE)):
            raise BadInput(f"its metadata lacks {', '.join(missing)}")
        if (unknown := sorted(set(values) - names)) and not newer:
            raise BadInput(f"its metadata has an unknown entry {unknown[0][:64]!r}")
        return cls(**{name: values[name] for name in names & set(values)})


def _is_newer(version: Any) -> bool:
    """Whether a readable file may say more than this code knows."""
    return _minor(version) > _minor(FORMAT)


def _minor(version: Any) -> int:
    """The second number of a version; refuses what is not readable."""
    match = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", version) if isinstance(version, str) else None
    if not match:
        raise BadInput(f"its metadata has format {str(version)[:64]!r}, which is not a version like {FORMAT}")
    major, _ = FORMAT.split(".")
    if match[1] != major:
        raise BadInput(f"it has format {version}, and this program reads {major}.x: update the program or export again")
    return int(match[2])


def _check_type(name: str, value: Any, expected: Any) -> None:
    if expected is float:
        right = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    elif get_origin(expected) is Literal:
        right = value in get_args(expected)
    elif get_origin(expected) is list:
        right = isinstance(value, list)
        for item in value if right else []:
            _check_type(name, item, get_args(expected)[0])
    elif get_origin(expected) is dict:
        right = isinstance(value, dict) and all(_is_setting(item) for item in value.values())
    else:
        right = type(value) is expected
    if not right:
        kind = getattr(expected, "__name__", str(expected))
        raise BadInput(f"its metadata has {name} {str(value)[:64]!r}, which is not of type {kind}")


def _is_setting(value: Any) -> bool:
    """Settings are plain: a scalar, or a list of scalars."""
    if isinstance(value, list | tuple):
        return all(not isinstance(item, list | tuple) and _is_setting(item) for item in value)
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
