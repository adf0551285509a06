"""Turn a trained world model into one ONNX file that plans.

    python -m export --run runs/pusht-qqworld --out qqworld.onnx
    python -m export --from-lewm lewm-pusht/ --env pusht --out lewm.onnx

The file is compared with torch before it appears under its name; the report is printed and written beside it as a
model card.
"""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agent import planning
from agent.world_models.onnx import OnnxWorldModel
from envs.errors import BadInput, parse_command_line, run
from export import card, parity
from export.lewm import read_lewm
from export.package import package
from export.source import Source, read_run


@dataclass(frozen=True)
class Export:
    """Turn a trained world model into one ONNX file that plans."""

    out: Path
    """The file to write; its model card gets the same name with .md."""
    run: Path | None = None
    """Run folder of the trainer."""
    proposals: Path | None = None
    """Folder of proposals to put into the file (default: the run's own, if it has any)."""
    from_lewm: Path | None = None
    """Published LeWM checkpoint instead: a folder or a file (safetensors or torch)."""
    env: str | None = None
    """Task of that checkpoint."""
    data: Path | None = None
    """Dataset that the checkpoint was trained on (HDF5), for the mean and spread of its actions."""
    horizon: int = 5
    """Most action blocks that a rollout can predict."""
    planner: tuple[str, ...] = ()
    """Planner settings to keep in the file as defaults, as name=cem candidates=200."""
    fp16: bool = False
    """Compute in float16, for GPUs; the report says what it costs."""
    licence: str = "MIT"
    """Licence of the weights."""


def export(settings: Export) -> str:
    """Write file and card, both or neither; returns the card."""
    source = _source(settings)
    planner = _planner(settings)
    precision = "float16" if settings.fp16 else "float32"
    content = package(source, settings.horizon, np.dtype(precision).type, planner, settings.licence)
    out = settings.out
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
    return (out.parent / described.name).read_text()


def _source(settings: Export) -> Source:
    if (settings.run is None) == (settings.from_lewm is None):
        raise BadInput("give either --run, a run folder, or --from-lewm, a published checkpoint")
    if settings.run is not None:
        return read_run(settings.run, settings.proposals)
    assert settings.from_lewm is not None
    if settings.env is None:
        raise BadInput("a published checkpoint does not say what task it is for: give --env")
    return read_lewm(settings.from_lewm, settings.env, settings.data)


def _planner(settings: Export) -> dict[str, Any]:
    """Name and settings of a planner that can be made, or none."""
    try:
        planner = planning.parse_settings(settings.planner)
        if planner:
            planning.make(**{"name": planning.DEFAULT} | planner)
    except ValueError as error:
        raise BadInput(str(error)) from error
    return planner


def main() -> None:
    settings = parse_command_line(Export, __doc__)
    print(export(settings))
    print(f"{settings.out} is ready: python play.py --model {settings.out}")


def command() -> None:
    """The installed program."""
    run(main)


if __name__ == "__main__":
    command()
