"""Where a network comes from: a run folder of the trainer."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

import models
from envs.errors import BadInput
from models import Proposals, WorldModel

CONFIG, CHECKPOINT, PREFIX, PROPOSALS = "config.json", "checkpoint.safetensors", "model.", "proposals"


@dataclass(frozen=True)
class Source:
    """A network with trained weights, and what is known about how it was trained."""

    model: WorldModel
    task: str
    look: Literal["fast", "paper"]
    preset: str
    network: dict[str, Any]
    objective: str
    data: str
    steps: int
    seed: int
    versions: dict[str, str]
    proposals: Proposals | None = None


def read_run(folder: Path, proposals: Path | None = None) -> Source:
    """The network in a run folder, at its last checkpoint, with its `proposals`: those in the folder if left out."""
    try:
        config = json.loads((folder / CONFIG).read_text())
        network = dict(config["network"])
        model = models.build(config["preset"], config["action_dim"], **network)
        steps, tensors = _checkpoint(folder / CHECKPOINT, PREFIX)
        load_weights(model, tensors, str(folder / CHECKPOINT))
        if proposals is None and (folder / PROPOSALS / CHECKPOINT).exists():
            proposals = folder / PROPOSALS
        return Source(
            model=model.eval(),
            task=config["env"],
            look=config["data"].get("look", "paper" if model.image_size == 224 else "fast"),
            preset=config["preset"],
            network=network,
            objective=config["objective"],
            data=config["data"]["fingerprint"],
            steps=steps + (config.get("encoder_steps") or 0),
            seed=config["seed"],
            versions=dict(config["versions"]),
            proposals=None if proposals is None else _proposals(proposals, model),
        )
    except OSError as error:
        raise BadInput(f"{folder} is no run folder with a checkpoint: {error}") from error
    except BadInput:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"{folder / CONFIG} does not describe a run of this trainer ({error})") from error


def _proposals(folder: Path, model: WorldModel) -> Proposals:
    """The proposals in `folder`, which must have been trained on the latents of this model's encoder."""
    config = json.loads((folder / CONFIG).read_text())
    if config["world_model"]["encoder"] != model.encoder_fingerprint():
        raise BadInput(
            f"the proposals in {folder} belong to another encoder, of a run at step {config['world_model']['step']}: "
            "delete them and run `python -m training.propose` again"
        )
    proposals = Proposals(**config["network"])
    tensors = _checkpoint(folder / CHECKPOINT)[1]
    load_weights(proposals, {n: t for n, t in tensors.items() if not n.startswith("optimiser.")}, str(folder))
    return proposals.eval()


def load_weights(model: nn.Module, tensors: dict[str, Tensor], origin: str) -> None:
    """Put `tensors` into `model`; names or shapes that do not fit are listed and refused."""
    expected = model.state_dict()
    problems = [f"{name} is missing" for name in sorted(expected.keys() - tensors.keys())]
    problems += [f"{name} is not part of the network" for name in sorted(tensors.keys() - expected.keys())]
    problems += [
        f"{name} has shape {tuple(tensor.shape)} instead of {tuple(expected[name].shape)}"
        for name, tensor in tensors.items()
        if name in expected and tensor.shape != expected[name].shape
    ]
    if problems:
        raise BadInput(f"{origin} does not fit the network: {'; '.join(problems)}")
    model.load_state_dict(tensors)


def _checkpoint(path: Path, prefix: str = "") -> tuple[int, dict[str, Tensor]]:
    """Step and tensors of a checkpoint; only those that begin with `prefix`, without it."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118
            return int(file.metadata()["step"]), {name.removeprefix(prefix): file.get_tensor(name) for name in names}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path} is damaged or no checkpoint of this trainer ({error})") from error
