"""One cell of a study: train, measure, export, evaluate; what is left of it is one small JSON file.

    python -m study.cell --plan study/plans/smoke.toml --cell two-room-qqworld-s0 --out runs/study/smoke

`python -m study.run` runs the cells of a plan like this, each in a process of its own. Killed at any moment, the same
command goes on.
"""

import contextlib
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from agent.episodes.settings import EpisodeSettings
from agent.evaluate import Evaluate, run_episodes
from envs.dataset.reader import open_dataset
from envs.errors import BadInput, parse_command_line, run
from export.__main__ import MODEL, Export, export
from models.run_folder import CONFIG, read_metrics
from study import plan as plans
from study.measure import assignments
from study.measures import describe_latents, training_memory
from study.plan import Cell, Evaluation, Plan
from training.phases.trainer import Diverged, Trainer

with contextlib.suppress(ImportError):
    import fcntl

RUN, EVALUATION, RESULT, LOCK = "run", "evaluation", "cell.json", ".lock"
CURVE = ("tail_rate", "qq_rmse", "error_5", "effective_rank")
"""What is kept of the measurements during training."""


@dataclass(frozen=True)
class RunCell:
    """One cell of a study."""

    plan: Path
    """The plan (TOML)."""
    cell: str
    """The cell's name."""
    out: Path
    """Folder of the study; the cell gets a folder in it."""
    data: Path
    """Dataset file of the cell's task."""


class CellTrainer(Trainer):
    """A trainer whose run folder nobody will look at."""

    def draw(self) -> None:
        """Draw nothing: it would take longer than a small cell's training."""


def run_cell(plan: Plan, cell: Cell, folder: Path, data: Path) -> dict[str, Any]:
    """Do what is left to do of a cell in `folder`, and return what is to be kept of it."""
    seconds: dict[str, float] = {}
    kept: dict[str, Any] = {"name": cell.name, "task": cell.task, "settings": cell.settings}
    config = replace(plans.config_of(cell), data=data, out=folder / RUN, threads=1)
    torch.set_num_threads(1)
    kept["training_mb"] = training_memory(config, open_dataset(data).action_dim)
    trainer = CellTrainer(config)
    try:
        with timed(seconds, "train"):
            trainer.run(bar=False)
        with timed(seconds, "measure"):
            kept |= describe_latents(trainer.learner.model, trainer.data, plan.measures)
    except Diverged as error:
        return kept | {"diverged": str(error).split(";")[0]}
    except torch.linalg.LinAlgError:  # of their covariance
        return kept | {"diverged": f"the latents are not finite at step {trainer.step}"}
    with timed(seconds, "export"):
        export(Export(run=folder / RUN, out=folder / MODEL, env=cell.task, planner="cem"))
    kept["evaluations"] = {}
    for planner, settings in plan.evaluation.planners.items():
        with timed(seconds, f"evaluate {planner}"):
            kept["evaluations"][planner] = evaluate(cell, plan.evaluation, planner, settings, folder)
    measured = [line for line in read_metrics(folder / RUN) if "held_out" in line]
    kept["curve"] = [{"step": line["step"], **{key: line["held_out"][key] for key in CURVE}} for line in measured]
    about = json.loads((folder / RUN / CONFIG).read_text())
    kept["run"] = {key: about[key] for key in ("objective", "regulariser", "network", "steps", "batch", "lr", "seed")}
    kept["data"] = about["data"]["fingerprint"]
    kept["seconds"] = {phase: round(value, 1) for phase, value in seconds.items()}
    kept["machine"] = f"{platform.machine()}, torch {torch.__version__}"
    return kept


def evaluate(
    cell: Cell, evaluation: Evaluation, planner: str, settings: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """First hits and last steps of every pair, as strings of 0 and 1 in the order of seeds and pairs."""
    how = EpisodeSettings(
        cell.task,
        offset=evaluation.offset,
        planner=plans.base_of(planner),
        plan=tuple(assignments(settings)),
        device="cpu",
    )
    asked = Evaluate(
        episode=how,
        model=(str(folder / MODEL),),
        agents=(),
        episodes=evaluation.episodes,
        seeds=evaluation.seeds,
        threads=1,
        out=folder / EVALUATION / planner.replace(" ", "-"),
    )
    _, _, lines = run_episodes(asked, progress=False)
    if failed := [line["error"] for line in lines if line.get("error")]:
        raise BadInput(f"{len(failed)} episodes of {cell.name} could not be run: {failed[0]}")
    plan_ms = sorted(ms for line in lines for ms in line["plan_ms"])
    return {
        "first_hit": "".join(str(int(line["success"])) for line in lines),
        "final": "".join(str(int(line["final"])) for line in lines),
        "plan_ms_p50": plan_ms[len(plan_ms) // 2] if plan_ms else None,
    }


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Keep how long a phase took."""
    started = time.perf_counter()
    yield
    seconds[phase] = time.perf_counter() - started


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other process runs this cell: one may have outlived the study that started it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "w") as held:
        if "fcntl" in globals():
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def write(path: Path, kept: dict[str, Any]) -> None:
    """Replace a file as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(kept, indent=1) + "\n")
    os.replace(partial, path)


def main() -> int:
    settings = parse_command_line(RunCell, __doc__)
    plan = plans.read(settings.plan)
    cell, folder = plan.cell(settings.cell), settings.out / settings.cell
    with alone(folder):
        if not (folder / RESULT).exists():
            write(folder / RESULT, {"plan": plan.name, **run_cell(plan, cell, folder, settings.data)})
    return 0


if __name__ == "__main__":
    run(main)
