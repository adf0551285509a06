"""Recipes: how each task's shipped models are made, as typed tables that are the defaults of the commands.

`recipes/pusht.toml` has the sections `data`, `encoder`, `predictor`, `proposals`, `planner` and `measure`. A section's
keys are the settings of the command that reads it; a key that command does not know is refused.
"""

import dataclasses
import tomllib
import types
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from envs.errors import BadInput

FOLDER = Path(__file__).parent.parent / "recipes"
MINUTES = "minutes"
"""Key of a section: how long its command takes on two cores."""
SECTIONS = ("data", "encoder", "predictor", "proposals", "planner", "measure")

Settings = TypeVar("Settings")


def data_path(task: str) -> Path:
    """Where a task's data is collected, unless a command says otherwise."""
    return Path("data") / f"{task}.h5"


def run_path(task: str, objective: str) -> Path:
    """Where a task's models are trained, unless a command says otherwise."""
    return Path("runs") / (task if objective == "qqworld" else f"{task}-{objective}")


def path_of(task: str) -> Path:
    """Where the recipe of a task is."""
    return FOLDER / f"{task}.toml"


def read(task: str) -> dict[str, dict[str, Any]]:
    """The sections of a task's recipe; all of them empty for a task that has none."""
    path = path_of(task)
    if not path.is_file():
        return {section: {} for section in SECTIONS}
    try:
        recipe = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path} is not a TOML file that can be read: {error}") from error
    for section in SECTIONS:
        if not isinstance(recipe.get(section), dict):
            raise BadInput(f"{path} has no section [{section}]: a recipe has {', '.join(SECTIONS)}")
    if unknown := sorted(set(recipe) - set(SECTIONS)):
        raise BadInput(f"{path} has an unknown section [{unknown[0]}]: a recipe has {', '.join(SECTIONS)}")
    return recipe


def minutes(task: str) -> dict[str, float]:
    """How long each section's command takes on two cores, where the recipe says it."""
    found = {section: table[MINUTES] for section, table in read(task).items() if MINUTES in table}
    for section, value in found.items():
        if not fits(value, float):
            raise BadInput(f"{path_of(task)} has [{section}] {MINUTES} = {value!r}, which must be a number")
    return found


def planner(task: str) -> dict[str, Any]:
    """Name and settings of the planner that the task's models are shipped with; empty for a task without a recipe."""
    return dict(read(task)["planner"])


def apply(settings: Settings, task: str, section: str) -> Settings:
    """`settings`, a dataclass, with a section of the task's recipe in place of its values."""
    table = {key: value for key, value in read(task)[section].items() if key != MINUTES}
    return filled(settings, table, f"{path_of(task)} has [{section}]")


def filled(settings: Settings, table: dict[str, Any], where: str) -> Settings:
    """`settings`, a dataclass, with the values of a TOML table; `where` begins the sentence that refuses one.

    Keys of dataclasses inside `settings` stand in the table without a prefix, as on the command line.
    """
    known = _keys(settings)
    for key, value in table.items():
        if key not in known:
            raise BadInput(f"{where} {key}, which is no setting there: it has {', '.join(sorted(known))}")
        if not fits(value, known[key]):
            raise BadInput(f"{where} {key} = {value!r}, which must be {describe(known[key])}")
    return _replaced(settings, table)


def _keys(settings: Any) -> dict[str, Any]:
    """Every key of a dataclass and of those inside it, with its type."""
    hints = get_type_hints(type(settings))
    keys: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        keys |= _keys(value) if dataclasses.is_dataclass(value) else {field.name: hints[field.name]}
    return keys


def _replaced(settings: Any, table: dict[str, Any]) -> Any:
    changes = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            changes[field.name] = _replaced(value, table)
        elif field.name in table:
            given = table[field.name]
            changes[field.name] = tuple(given) if isinstance(given, list) else given
    return dataclasses.replace(settings, **changes)


def fits(value: Any, kind: Any) -> bool:
    """Whether a TOML value is of a setting's type."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in inside)
    if origin is Literal:
        return value in inside
    if origin is tuple:
        return isinstance(value, list) and all(fits(item, inside[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is Path:
        return isinstance(value, str)
    return type(value) is kind


def describe(kind: Any) -> str:
    """A setting's type in words."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(one) for one in inside if one is not type(None))
    if origin is Literal:
        return " or ".join(repr(choice) for choice in inside)
    if origin is tuple:
        return f"a list, each of it {describe(inside[0])}"
    if origin is dict:
        return "a table"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "text"}
    return names.get(kind, str(kind))
