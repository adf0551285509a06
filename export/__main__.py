"""Turn a trained world model into one ONNX file that plans.

    python -m export --env pusht
    python -m export --run runs/pusht-lewm --out lewm.onnx
    python -m export --from-lewm lewm-pusht/ --env pusht --out lewm.onnx
    python -m export --to-torch pretrained/pusht/qqworld.onnx --out runs/from-file

The first writes runs/pusht/model.onnx. The file is compared with torch before it appears under its name; the report is
printed and written beside it as a model card. The last goes back: it writes a run folder that training can go on from.
"""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agent import planning
from agent.world_models.onnx import OnnxWorldModel
from envs import recipes
from envs.errors import BadInput, parse_command_line, run
from export import card, parity
from export.lewm import read_lewm
from export.package import package
from export.source import Source, read_run
from export.to_torch import write_run

MODEL = "model.onnx"
RECIPE_PRESET = "compact"


@dataclass(frozen=True)
class Export:
    """Turn a trained world model into one ONNX file that plans."""

    env: str | None = None
    """Task, to find its run folder, or that of a published checkpoint."""
    run: Path | None = None
    """Run folder of the trainer (default: runs/TASK)."""
    out: Path | None = None
    """The file to write (default: RUN/model.onnx); its model card gets the same name with .md."""
    proposals: Path | None = None
    """Folder of proposals to put into the file (default: the run's own, if it has any)."""
    from_lewm: Path | None = None
    """Published LeWM checkpoint instead: a folder or a file (safetensors or torch)."""
    data: Path | None = None
    """Dataset that the checkpoint was trained on (HDF5), for the mean and spread of its actions."""
    horizon: int = 5
    """Most action blocks that a rollout can predict."""
    planner: str | None = None
    """Planner to keep in the file as its own: cem, guided, propose, ... (default: the recipe's)."""
    plan: tuple[str, ...] = ()
    """Settings of that planner, for example: candidates=200 iterations=5."""
    fp16: bool = False
    """Compute in float16, for GPUs; the report says what it costs."""
    licence: str = "MIT"
    """Licence of the weights."""
    to_torch: Path | None = None
    """World-model file to turn back into a run folder, which --out names; needs nothing else."""

    @property
    def folder(self) -> Path | None:
        """The run folder, if one is to be read."""
        if self.from_lewm is not None:
            return None
        return self.run or (recipes.run_path(self.env, "qqworld") if self.env else None)


def export(settings: Export) -> Path:
    """Write file and card, both or neither; returns the file's path."""
    source = _source(settings)
    precision = "float16" if settings.fp16 else "float32"
    dtype = np.dtype(precision).type
    content = package(source, settings.horizon, dtype, _planner(settings, source), settings.licence)
    out = settings.out or (settings.folder or Path()) / MODEL
    if out.suffix != ".onnx":
        raise BadInput(f"--out must end in .onnx, got {out}")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".export-") as folder:
        draft, described = Path(folder) / out.name, Path(folder) / out.with_suffix(".md").name
        draft.write_bytes(content)
        file = OnnxWorldModel(draft, device="cpu")
        report = parity.compare(source.model, file, parity.TOLERANCE[precision], proposals=source.proposals)
        if not report.passed:
            raise BadInput(f"the file does not do what torch does ({'; '.join(report.lines())}): nothing was written")
        described.write_text(card.write(file, source.model, out.name, len(content), precision, report))
        for written in (draft, described):
            os.replace(written, out.parent / written.name)
    return out


def _source(settings: Export) -> Source:
    if settings.from_lewm is None:
        if settings.folder is None:
            raise BadInput("give --env, a task, --run, a run folder, or --from-lewm, a published checkpoint")
        return read_run(settings.folder, settings.proposals)
    if settings.run is not None:
        raise BadInput("give either --run, a run folder, or --from-lewm, a published checkpoint")
    if settings.env is None:
        raise BadInput("a published checkpoint does not say what task it is for: give --env")
    return read_lewm(settings.from_lewm, settings.env, settings.data)


def _planner(settings: Export, source: Source) -> dict[str, Any]:
    """Name and settings of a planner that can be made: as asked for, or the recipe's if the network can follow it."""
    recipe = recipes.planner(source.task) if source.preset == RECIPE_PRESET else {}
    own = _made(recipe, f"{recipes.path_of(source.task)} has [planner]: ") if recipe else None
    if settings.planner is None and not settings.plan:
        return {} if own and own.needs_proposals and source.proposals is None else recipe
    base = recipe if settings.planner in (None, recipe.get("name")) else {}
    try:
        planner = base | {"name": settings.planner or base.get("name", planning.DEFAULT)}
        planner |= planning.parse_settings(settings.plan)
    except ValueError as error:
        raise BadInput(str(error)) from error
    _made(planner)
    return planner


def _made(settings: dict[str, Any], where: str = "") -> planning.Planner:
    """The planner of these settings; `where` begins the sentence that refuses them."""
    try:
        return planning.make(**settings)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{where}{error}") from error


def give_back(file: Path, settings: Export) -> None:
    """Write a world-model file as a run folder and say how training goes on from there."""
    if settings.out is None or settings.run or settings.from_lewm:
        raise BadInput("--to-torch takes a world-model file: give --out, the run folder to write, and no other source")
    about = write_run(file, settings.out)
    flags = f"--env {about.task} --preset {about.preset} --phases predictor proposals --encoder-from {settings.out}"
    print(f"{settings.out} is ready: python -m training.train {flags} --out runs/{about.task}-more")


def main() -> None:
    settings = parse_command_line(Export, __doc__)
    if settings.to_torch is not None:
        return give_back(settings.to_torch, settings)
    out = export(settings)
    print(out.with_suffix(".md").read_text())
    print(f"{out} is ready: python play.py --env {OnnxWorldModel(out, device='cpu').task} --model {out}")


def command() -> None:
    """The installed program."""
    run(main)


if __name__ == "__main__":
    command()
