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

LARGEST_ACTION = 1e6
"""Numbers that describe actions lie within this, and spreads not below its inverse."""
MAX_ROW_NUMBERS = 2**15
"""Numbers of one candidate with its context, and of one row of proposals."""
MAX_PLAN_NUMBERS = 300 * MAX_ROW_NUMBERS
MAX_ROLLOUTS = 30_000
"""Candidates of all iterations of one plan."""
PLANNER_LIMITS = {
    "candidates": 5_000,
    "iterations": 1_000,
    "samples": 5_000,
    "arrivals": 1_000,
    "elites": 5_000,
    "keep": 5_000,
    "reach": 10_000,
    "colour": 10,
}
"""The most that a file may ask of a planner, 1,000 where nothing is said; a person may ask for more."""
PLANNER_DEFAULTS = {"candidates": 300, "iterations": 30, "samples": 16, "arrivals": 5}
"""What planners do when a file leaves it to them, or more."""
MAX_STRING = 256

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
            if not all(abs(value) <= LARGEST_ACTION for value in values):
                raise BadInput(f"its metadata has a number in {name} that is not from -1e6 to 1e6")
        if not all(low < high for low, high in zip(self.action_low, self.action_high, strict=True)):
            raise BadInput("its metadata has an action_low that is not below its action_high")
        if not all(1 / LARGEST_ACTION <= std <= LARGEST_ACTION for std in self.action_std):
            raise BadInput("its metadata has an action_std outside 1e-6 to 1e6")
        block = self.action_dim * self.action_block
        row = (self.history + self.horizon) * (self.latent_size + block)
        if max(row, self.proposals * (1 + 2 * block)) > MAX_ROW_NUMBERS:
            raise BadInput(f"its metadata has candidates or proposals of more than {MAX_ROW_NUMBERS:,} numbers")
        _check_planner(self.planner)
        plans = max(self._asks("candidates"), self._asks("samples") + self._asks("arrivals"))
        if plans * row > MAX_PLAN_NUMBERS or self.rollouts > MAX_ROLLOUTS:
            raise BadInput("its metadata has a planner that would take too much memory or time")
        for name, since in SINCE.items():
            if getattr(self, name) and _minor(self.format) < _minor(since):
                raise BadInput(f"its metadata has {name}, which format {self.format} does not know")

    @property
    def rollouts(self) -> float:
        """Candidates of all iterations of one plan."""
        return self._asks("candidates") * self._asks("iterations")

    def _asks(self, setting: str) -> float:
        return self.planner.get(setting, PLANNER_DEFAULTS[setting])

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


def _check_planner(settings: Settings) -> None:
    """Refuse settings that are not those of a planner, and numbers beyond what a file may ask for."""
    for name, value in settings.items():
        text = name in ("name", "cost", "answer")
        if not isinstance(value, str if text else int | float):
            raise BadInput(f"its metadata has a planner with {name} {str(value)[:64]!r}")
        limit = PLANNER_LIMITS.get(name, 1_000)
        if not isinstance(value, str) and value and not 1e-6 <= abs(value) <= limit:
            raise BadInput(f"its metadata has a planner with {name} {value}, which must lie from 1e-6 to {limit:,}")


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
        right = isinstance(value, dict) and all(_is_setting(item) for item in (*value, *value.values()))
    else:
        right = type(value) is expected and _is_setting(value)
    if not right:
        kind = getattr(expected, "__name__", str(expected))
        raise BadInput(f"its metadata has {name} {str(value)[:64]!r}, which is not of type {kind}")


def _is_setting(value: Any) -> bool:
    """Settings are plain: a scalar, or a list of scalars; text fits a line and does nothing to a terminal."""
    if isinstance(value, list | tuple):
        return all(not isinstance(item, list | tuple) and _is_setting(item) for item in value)
    if isinstance(value, str):
        return len(value) <= MAX_STRING and value.isprintable()
    if isinstance(value, int):
        return abs(value) < 2**63
    return value is None or (isinstance(value, float) and math.isfinite(value))
