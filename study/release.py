"""Put the trained models of a task into pretrained/, exported from a clean revision.

    python -m study.release --env pusht          or: make release-models TASK=pusht

Takes the runs that `python -m study.reproduce` left. Cards then name the revision that made the files. What describes
the training (config.json, metrics.jsonl and training.png of every phase) comes along; weights are in the files alone.
"""

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from agent.world_models.registry import PRETRAINED
from envs import recipes
from envs.errors import BadInput, parse_command_line, run
from export.__main__ import Export, export
from models.run_folder import CONFIG, ENCODER, METRICS, PROPOSALS
from study.reproduce import OBJECTIVES, checked

KEPT = (CONFIG, METRICS, "training.png")


@dataclass(frozen=True)
class Release:
    """Put the trained models of a task into pretrained/."""

    env: str
    """Task: two-room, pusht, reacher or cube."""
    objectives: tuple[str, ...] = OBJECTIVES
    """Models to release."""
    out: Path = PRETRAINED
    """Folder of the shipped models."""


def release(settings: Release) -> list[Path]:
    """Export every model, then put all of them in their place; the files."""
    task = checked(settings.env)
    if changed := uncommitted():
        raise BadInput(f"the tree has changes that are not committed ({changed[0]}): commit them, then release")
    runs = {objective: recipes.run_path(task, objective) for objective in settings.objectives}
    if missing := [str(folder) for folder in runs.values() if not (folder / CONFIG).exists()]:
        raise BadInput(f"there is no run {missing[0]}: train it first (`python -m study.reproduce --env {task}`)")
    place = settings.out / task
    with tempfile.TemporaryDirectory() as drafts:
        for objective, folder in runs.items():
            export(Export(run=folder, out=Path(drafts) / f"{objective}.onnx"))
        place.mkdir(parents=True, exist_ok=True)
        for draft in Path(drafts).iterdir():
            shutil.copy(draft, place / draft.name)
    for objective, folder in runs.items():
        shutil.rmtree(place / objective, ignore_errors=True)
        for part in ("", ENCODER, PROPOSALS):
            keep(folder / part, place / objective / part)
    return [place / f"{objective}.onnx" for objective in runs]


def keep(folder: Path, place: Path) -> None:
    """Copy what describes a run, without its weights."""
    for name in KEPT:
        if (folder / name).exists():
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / name, place / name)


def uncommitted() -> list[str]:
    """Tracked files that differ from the last commit."""
    command = ["git", "-C", str(Path(__file__).parent), "status", "--porcelain", "--untracked-files=no"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BadInput("this is not a git checkout, so nothing can be released from it") from error
    return [line[3:] for line in said.splitlines()]


def main() -> int:
    for file in release(parse_command_line(Release, __doc__)):
        print(f"released {file}")
    return 0


if __name__ == "__main__":
    run(main)
