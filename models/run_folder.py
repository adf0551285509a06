"""Reads a run folder: `config.json`, `metrics.jsonl`, `checkpoint.safetensors`, and a folder `proposals` like it.

`training/run_folder.py` writes it, under the names that stand here.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

from envs.dataset.layout import Look
from envs.errors import BadInput
from models.presets import build
from models.proposal_network import Proposals
from models.world_model import WorldModel

CONFIG, METRICS, CHECKPOINT = "config.json", "metrics.jsonl", "checkpoint.safetensors"
ENCODER, PROPOSALS = "encoder", "proposals"
"""Folders inside a run folder, with the same files: the run that trained its encoder, and proposals on its latents."""
MODEL, OPTIMISER = "model.", "optimiser."
"""How the names of the world model's and of the optimiser's tensors begin in a checkpoint."""


@dataclass(frozen=True)
class Run:
    """A trained world model at its last checkpoint, and how it was trained."""

    model: WorldModel
    """In evaluation mode and without gradients."""
    step: int
    encoder_steps: int
    """Steps of the run whose encoder this one keeps, 0 if it has its own."""
    task: str
    look: Look
    preset: str
    network: dict[str, Any]
    """Settings for `models.build`."""
    objective: str
    data: str
    """Fingerprint of the dataset."""
    seed: int
    versions: dict[str, str]


def read_run(folder: Path) -> Run:
    """The world model in a run folder; a folder that holds none is refused in one sentence."""
    config = read_config(folder)
    with _described_by(folder):
        model = build(config["preset"], config["action_dim"], **config["network"])
        step, tensors = read_checkpoint(folder, MODEL)
        load_weights(model, tensors, str(folder / CHECKPOINT))
        look: Look | None = config["data"].get("look")
        return Run(
            model=model.eval().requires_grad_(False),
            step=step,
            encoder_steps=config.get("encoder_steps") or 0,
            task=config["env"],
            # Published files do not say how they look, and runs did not keep it at first.
            look=look or ("paper" if model.image_size == 224 else "fast"),
            preset=config["preset"],
            network=dict(config["network"]),
            objective=config["objective"],
            data=config["data"]["fingerprint"],
            seed=config["seed"],
            versions=dict(config["versions"]),
        )


def read_proposals(run: Path, model: WorldModel, folder: Path | None = None) -> Proposals | None:
    """The proposals in `folder`, which must be learned on the latents of this model's encoder.

    Default: those in the folder of the `run`, or None if it has none.
    """
    folder = folder or run / PROPOSALS
    if folder == run / PROPOSALS and not (folder / CHECKPOINT).exists():
        return None
    config = read_config(folder)
    with _described_by(folder):
        learned_on = config["world_model"]
        if learned_on["encoder"] != model.encoder_fingerprint():
            raise BadInput(
                f"the proposals in {folder} belong to another encoder, of a run at step {learned_on['step']}: "
                "delete them and train them again (`python -m training.train --phases proposals`)"
            )
        proposals = Proposals(**config["network"])
        _, tensors = read_checkpoint(folder)
        weights = {name: tensor for name, tensor in tensors.items() if not name.startswith(OPTIMISER)}
        load_weights(proposals, weights, str(folder / CHECKPOINT))
    return proposals.eval()


def read_config(folder: Path) -> dict[str, Any]:
    """What the run was started with."""
    try:
        return dict(json.loads((folder / CONFIG).read_text()))
    except (OSError, TypeError, ValueError) as error:
        raise BadInput(f"{folder} is not a run folder: its {CONFIG} cannot be read ({error})") from error


def read_checkpoint(folder: Path, prefix: str = "") -> tuple[int, dict[str, Tensor]]:
    """Step and tensors of the last checkpoint; only those that begin with `prefix`, without it."""
    path = folder / CHECKPOINT
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118
            return int(file.metadata()["step"]), {name.removeprefix(prefix): file.get_tensor(name) for name in names}
    except FileNotFoundError:
        raise BadInput(f"{folder} has no checkpoint yet: train there first") from None
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path} is damaged or not a checkpoint of this trainer ({error})") from error


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Every complete line of the metrics."""
    path = folder / METRICS
    lines = []
    for line in path.read_text().splitlines() if path.exists() else []:
        with suppress(ValueError):  # a kill can cut the last line
            lines.append(json.loads(line))
    return lines


def last_measured(folder: Path) -> dict[str, float]:
    """What was measured last on held-out episodes."""
    return next((line["held_out"] for line in reversed(read_metrics(folder)) if "held_out" in line), {})


def load_weights(network: nn.Module, tensors: dict[str, Tensor], origin: str) -> None:
    """Put `tensors` into `network`; names or shapes that do not fit are listed and refused."""
    expected = network.state_dict()
    problems = [f"{name} is missing" for name in sorted(expected.keys() - tensors.keys())]
    problems += [f"{name} is not part of the network" for name in sorted(tensors.keys() - expected.keys())]
    problems += [
        f"{name} has shape {tuple(tensor.shape)} instead of {tuple(expected[name].shape)}"
        for name, tensor in tensors.items()
        if name in expected and tensor.shape != expected[name].shape
    ]
    if problems:
        raise BadInput(f"{origin} does not fit the network: {'; '.join(problems)}")
    network.load_state_dict(tensors)


@contextmanager
def _described_by(folder: Path) -> Iterator[None]:
    """Where a config that lacks something, or says what cannot be built, is refused in one sentence."""
    try:
        yield
    except BadInput:
        raise
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise BadInput(f"{folder / CONFIG} does not describe a run of this trainer ({error})") from error
