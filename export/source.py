"""What export turns into a file: a trained network and how it was trained."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.dataset.layout import Look
from models import Proposals, WorldModel, run_folder


@dataclass(frozen=True)
class Source:
    """A network with trained weights, and what is known about how it was trained."""

    model: WorldModel
    task: str
    look: Look
    preset: str
    network: dict[str, Any]
    objective: str
    data: str
    steps: int
    seed: int
    versions: dict[str, str]
    proposals: Proposals | None = None


def read_run(folder: Path, proposals: Path | None = None) -> Source:
    """The network in a run folder, at its last checkpoint, with the folder `proposals` (default: the run's, if any)."""
    run = run_folder.read_run(folder)
    return Source(
        model=run.model,
        task=run.task,
        look=run.look,
        preset=run.preset,
        network=run.network,
        objective=run.objective,
        data=run.data,
        steps=run.step + run.encoder_steps,
        seed=run.seed,
        versions=run.versions,
        proposals=run_folder.read_proposals(folder, run.model, proposals),
    )
