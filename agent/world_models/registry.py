"""How a name on the command line becomes a world model: a file, a shipped file, the simulator, or a class."""

import importlib
import re
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import envs
from agent.world_models.base import WorldModel
from envs import BadInput, Task

PRETRAINED = Path(__file__).parents[2] / "pretrained"
"""Shipped models: `<task>/<name>.onnx`."""
SIMULATOR = "agent.world_models.simulator:SimulatorWorldModel"
OPTIONAL = {name: value for name, value in vars(WorldModel).items() if name in (*WorldModel.__annotations__, "propose")}
"""What a class may leave out, with what its objects then have."""
REQUIRED = [*(name for name in WorldModel.__annotations__ if name not in OPTIONAL), "encode", "rollout"]


def load(model: str, task: Task | str, device: str = "auto", threads: int | None = None) -> WorldModel:
    """The world model that `model` names, for `task`.

    `model` is a file, the name of a file under `pretrained/<task>/`, `simulator`, or `package.module:Class`, which is
    called with a task of its own; `device` and `threads` are for files. What is loaded has all that `WorldModel` lists.
    """
    task = envs.make(task) if isinstance(task, str) else task
    name = task.name
    if (file := find(model, name)) is not None:
        from agent.world_models.onnx import OnnxWorldModel

        loaded: WorldModel = OnnxWorldModel(file, device=device, threads=threads)
    else:
        loaded = _complete(_import(SIMULATOR if model == "simulator" else model)(envs.make(name)), model)
    if loaded.task != name:
        raise BadInput(f"{model} is a model of {loaded.task}, not of {name}: choose another model or another task")
    if loaded.action_dim != len(task.action_names):
        raise BadInput(f"{model} takes {loaded.action_dim} numbers an action, but {name} has {len(task.action_names)}")
    return loaded


def find(model: str, task: str) -> Path | None:
    """The file that `model` names, here or under `pretrained/<task>/`; None when it names a class.

    A bare name means the file of that name here, unless it is a model of another task and one of this task is shipped.
    """
    here, shipped_file = Path(model), PRETRAINED / task / model
    if here.is_file():
        if here.name != model or not shipped_file.is_file():
            return here
        from agent.world_models.file import read  # onnx takes a while to import

        return here if read(here).metadata.task == task else shipped_file
    if shipped_file.is_file():
        return shipped_file
    if ":" in model or model == "simulator":
        return None
    shipped = ", ".join(sorted(file.name for file in (PRETRAINED / task).glob("*.onnx"))) or "none"
    raise BadInput(f"there is no model {model}, here or under pretrained/{task}/, which holds {shipped}")


def _complete(model: Any, name: str) -> WorldModel:
    """`model` with the defaults of what it leaves out; what has no default must be there."""
    required = [*REQUIRED, "propose"] if getattr(model, "proposes", False) else REQUIRED
    if missing := [part for part in required if not hasattr(model, part)]:
        raise BadInput(f"{name} is not a usable world model: it lacks {', '.join(missing)}")
    for part, default in OPTIONAL.items():
        if not hasattr(model, part):
            setattr(model, part, MethodType(default, model) if isinstance(default, FunctionType) else default)
    return model


def _import(model: str) -> type:
    module, _, name = model.partition(":")
    module = re.sub(r"^agent\.examples\.", "agent.world_models.examples.", module)  # what the README once said
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput(f"{model} is neither a file nor a class that can be imported ({error})") from error
