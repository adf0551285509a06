"""The phases of a world model, in turn: each with the settings of its recipe, in its own part of the run folder.

    OUT/encoder     encoder, with a predictor that teaches it
    OUT             the world model: that encoder, and a predictor trained alone on its latents
    OUT/proposals   which actions lead from one latent to another

`joint` is the first alone, in OUT: how LeWM trains.
"""

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import replace

from envs import recipes
from envs.errors import BadInput
from models.run_folder import CHECKPOINT, ENCODER
from training import objectives
from training.config import Config, Network, Phase, Regulariser
from training.phases.proposal_trainer import ProposalConfig, ProposalTrainer
from training.phases.trainer import Trainer

RECIPE_PRESET = "compact"
"""Recipes are for this network; others are trained as published."""
SHARED = ("steps", "batch", "lr", "weight_decay", "log_every", "eval_every", "checkpoint_every")
"""Settings of the same name whose defaults differ between world models and proposals."""
SECTIONS: dict[Phase, str] = {
    "encoder": "encoder",
    "joint": "encoder",
    "predictor": "predictor",
    "proposals": "proposals",
}


def phases_of(config: Config) -> tuple[Phase, ...]:
    """The phases to run."""
    if config.phases:
        return config.phases
    return ("encoder", "predictor", "proposals") if config.preset == RECIPE_PRESET else ("joint",)


def defaults(phase: Phase, asked: Config) -> Config:
    """What a phase does if no flag says otherwise; of `asked` only the task, the objective and the preset count."""
    config = Config(asked.env, objective=asked.objective, preset=asked.preset)
    if phase == "proposals":
        own = ProposalConfig(run=config.folder, data=config.data_path)
        network = Network(width=own.width, depth=own.depth, dropout=own.dropout)
        config = replace(config, network=network, **{name: getattr(own, name) for name in SHARED})
    if asked.preset != RECIPE_PRESET:
        return config
    config = recipes.apply(config, asked.env, SECTIONS[phase])
    return replace(config, regulariser=_understood(config)) if phase != "proposals" else config


def _understood(config: Config) -> Regulariser:
    """The recipe's regulariser without what the objective does not have."""
    kind = objectives.kind_of(config.objective)
    known = set(inspect.signature(kind).parameters) | ({"strength"} if kind.unit_force else set())
    unknown = [field.name for field in dataclasses.fields(config.regulariser) if field.name not in known]
    return replace(config.regulariser, **dict.fromkeys(unknown))


def make_trainer(phase: Phase, config: Config, say: Callable[[str], None], title: str) -> Trainer | ProposalTrainer:
    """The trainer of a phase, in its part of the run folder."""
    folder = config.folder
    if phase == "proposals":
        return ProposalTrainer(proposal_config(config), title=title)
    if phase == "encoder":
        config = replace(config, out=folder / ENCODER)
    elif phase == "predictor" and config.encoder_from is None:
        if not (folder / ENCODER / CHECKPOINT).exists():
            raise BadInput(f"{folder / ENCODER} has no trained encoder: train it first, or name one by --encoder-from")
        config = replace(config, encoder_from=folder / ENCODER)
    return Trainer(config, say, title)


def proposal_config(config: Config) -> ProposalConfig:
    """The settings of proposals for the world model in a run folder."""
    shared = (*SHARED, "seed", "device", "threads")
    given = {name: value for name in shared if (value := getattr(config, name)) is not None}
    sizes = {name: getattr(config.network, name) for name in ("width", "depth", "dropout")}
    given |= {name: value for name, value in sizes.items() if value is not None}
    return ProposalConfig(config.folder, config.data_path, **given, **dataclasses.asdict(config.proposing))
