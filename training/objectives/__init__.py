"""Every objective by name; adding one is a file with one class and one line here.

`make("qqworld", queue=2)` gives a module that turns latents and prediction errors into a loss, and
`make("smwm", task="pusht")` takes the weights published for that task.
"""

import inspect
from typing import Any

from envs.errors import BadInput
from training.objectives.base import Loss, NoRegulariser, Objective
from training.objectives.lewm import LeWM
from training.objectives.pldm import PLDM
from training.objectives.qqworld import QQWorld
from training.objectives.sd_jepa import SDJEPA
from training.objectives.smwm import SMWM
from training.objectives.sub_jepa import SubJEPA
from training.objectives.vicreg import VICReg
from training.objectives.visreg import VISReg

OBJECTIVES: dict[str, type[Objective]] = {
    "qqworld": QQWorld,
    "lewm": LeWM,
    "vicreg": VICReg,
    "pldm": PLDM,
    "visreg": VISReg,
    "sub-jepa": SubJEPA,
    "sd-jepa": SDJEPA,
    "smwm": SMWM,
    "none": NoRegulariser,
}


def kind_of(name: str) -> type[Objective]:
    """The class of the objective called `name`."""
    if name not in OBJECTIVES:
        raise BadInput(f"unknown objective '{name}': choose one of {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name]


def make(name: str, task: str | None = None, **settings: Any) -> Objective:
    """The objective called `name` with the settings published for `task`, unless `settings` say otherwise."""
    kind = kind_of(name)
    signature = inspect.signature(kind)
    if unknown := [key for key in settings if key not in signature.parameters]:
        raise BadInput(f"the objective {name} has no setting '{unknown[0]}': it has {', '.join(signature.parameters)}")
    chosen = signature.bind(**{**kind.published.get(task or "", {}), **settings})
    chosen.apply_defaults()
    objective = kind(**chosen.arguments)
    objective.settings = dict(chosen.arguments)
    return objective


__all__ = ["OBJECTIVES", "Loss", "Objective", "kind_of", "make"]
