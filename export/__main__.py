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

import numpy as np

from agent import planner as planners
from agent.onnx_model import OnnxWorldModel
from envs.errors import BadInput, parse, run
from export import card, parity
from export.package import package
from export.source import Source, read_run


@dataclass(frozen=True)
class Export:
    """Turn a trained world model into one ONNX file that plans."""

    out: Path
    """The file to write; its model card gets the same name with .md."""
    run: Path | None = None
    """Run folder of the trainer."""
    from_lewm: Path | None = None
    """Published LeWM checkpoint instead: a folder or a file (safetensors or torch)."""
    env: str | None = None
    """Task of that checkpoint."""
    horizon: int = 5
    """Most action blocks that a rollout can predict."""
    planner: tuple[str, ...] = ()
    """Planner settings to keep in the file as defaults, as name=cem candidates=200."""
    fp16: bool = False
    """Compute in float16, for GPUs; the report says what it costs."""
    licence: str = "MIT"
    """Licence of the weights."""


def main() -> None:
    settings = parse(Export, __doc__)
    source = _source(settings)
    planner = planners.parse(settings.planner)
    if planner:
        planners.make(**{"name": "cem"} | planner)
    precision = "float16" if settings.fp16 else "float32"
    content = package(source, settings.horizon, np.dtype(precision).type, planner, settings.licence)

    settings.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.out.parent, prefix=".export-") as folder:
        draft = Path(folder) / settings.out.name
        draft.write_bytes(content)
        file = OnnxWorldModel(draft, device="cpu")
        report = parity.compare(source.model, file, parity.TOLERANCE[precision])
        for line in report.lines():
            print(line)
        if not report.passed:
            raise BadInput(
                f"the file differs from torch by {report.worst:.1e} (at most {report.tolerance:.0e} allowed) or finds "
                "other elites, so nothing was written"
            )
        described = Path(folder) / settings.out.with_suffix(".md").name
        described.write_text(card.write(file, settings.out.name, len(content), precision, report))
        for written in (draft, described):
            os.replace(written, settings.out.parent / written.name)
    print(f"{settings.out}: {len(content) / 1e6:.1f} MB, largest difference from torch {report.worst:.1e}")


def _source(settings: Export) -> Source:
    if (settings.run is None) == (settings.from_lewm is None):
        raise BadInput("give either --run or --from-lewm")
    if settings.run is not None:
        return read_run(settings.run)
    raise BadInput("not yet")


if __name__ == "__main__":
    run(main)
