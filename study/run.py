"""Train, measure and evaluate every cell of a plan.

    python -m study.run study/plans/dose-response.toml --out runs/study/dose-response --workers 2
    python -m study.run study/plans/dose-response.toml --dry-run

Cells are independent: each runs in a process of its own, and one that diverges is a result. A finished cell leaves a
small JSON file under docs/study/PLAN, from which tables and figures are made. Stopped or killed at any moment, the same
command goes on.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from tqdm import tqdm

from envs import recipes
from envs.collect import Collect, collect
from envs.errors import BadInput, parse_command_line, run
from study import cells as kept
from study import plan as plans
from study.cell import RESULT, write
from study.plan import Cell, Plan


@dataclass(frozen=True)
class Run:
    """Train, measure and evaluate every cell of a plan."""

    plan: Annotated[Path, tyro.conf.Positional] = kept.PLANS / "smoke.toml"
    """The plan (TOML); the default is a tiny one that tries every part."""
    out: Path | None = None
    """Folder for runs and evaluations (default: runs/study/PLAN)."""
    cells: Path | None = None
    """Folder for the cells' results (default: docs/study/PLAN)."""
    data: Path = Path("data")
    """Folder of datasets; what a task lacks is collected there first."""
    workers: int = 1
    """Cells that run at a time, each on one core."""
    ray: bool = False
    """Run cells on Ray: the cluster that RAY_ADDRESS names, where paths are the same, or this machine."""
    dry_run: bool = False
    """Only say how many cells and core-hours there are."""


def study(settings: Run) -> int:
    """Run what is missing of a plan; how many cells could not be run."""
    if settings.workers < 1:
        raise BadInput(f"--workers must be at least 1, got {settings.workers}")
    plan = plans.read(settings.plan)
    out = settings.out or Path("runs/study") / plan.name
    cells = settings.cells or kept.CELLS / plan.name
    done = {finished.cell.name for finished in kept.finished(plan, cells)}
    missing = [cell for cell in plan.cells if cell.name not in done]
    print(describe(plan, missing, cells), flush=True)
    if settings.dry_run:
        return 0
    data = {task: collected(plan, task, settings.data) for task in dict.fromkeys(cell.task for cell in missing)}
    commands = {cell.name: command(settings.plan, cell, out, data[cell.task]) for cell in missing}
    failed = []
    with tqdm(total=len(plan.cells), initial=len(plan.cells) - len(missing), unit="cell", desc=plan.name) as bar:
        for name, error in (on_ray if settings.ray else in_processes)(commands, settings.workers):
            if error:
                failed.append(name)
                tqdm.write(f"{name}: {error}", file=sys.stderr)
            else:
                write(cells / f"{name}.json", json.loads((out / name / RESULT).read_text()))
                shutil.rmtree(out / name, ignore_errors=True)  # runs are large, and the cell holds what matters
            bar.update()
    return len(failed)


def describe(plan: Plan, missing: Sequence[Cell], cells: Path) -> str:
    """How much there is to do."""
    minutes = typical_minutes(cells) or plan.about.minutes
    return (
        f"{plan.name}: {plan.about.question}\n{len(plan.cells)} cells, {len(missing)} of them to run, about "
        f"{len(missing) * minutes / 60:.1f} core-hours"
    )


def typical_minutes(cells: Path) -> float | None:
    """What finished cells took of one core, on average."""
    found = [json.loads(file.read_text()).get("seconds", {}) for file in cells.glob("*.json")]
    sums = [sum(seconds.values()) for seconds in found if seconds]
    return sum(sums) / len(sums) / 60 if sums else None


def collected(plan: Plan, task: str, folder: Path) -> Path:
    """The data of a task, collected if it is not there yet."""
    settings = recipes.apply(Collect(task), task, "data")
    settings = replace(settings, out=folder / f"{task}.h5")
    if (episodes := plan.about.episodes) is not None:
        settings = replace(settings, episodes=episodes, out=folder / f"{task}-{episodes}.h5")
    if not settings.path.exists():
        print(collect(settings), flush=True)
    return settings.path


def command(plan: Path, cell: Cell, out: Path, data: Path) -> list[str]:
    """The command that runs one cell."""
    words = ["--plan", str(plan), "--cell", cell.name, "--out", str(out), "--data", str(data)]
    return [sys.executable, "-m", "study.cell", *words]


def work(words: list[str]) -> str | None:
    """Run a cell in a process of its own; the end of what it said if it failed."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]


def in_processes(commands: dict[str, list[str]], workers: int) -> Iterator[tuple[str, str | None]]:
    """Run cells, a few at a time; the name of each when it is done, and what went wrong if anything did."""
    with ThreadPoolExecutor(workers) as pool:
        running: dict[Future[str | None], str] = {pool.submit(work, words): name for name, words in commands.items()}
        try:
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def on_ray(commands: dict[str, list[str]], workers: int) -> Iterator[tuple[str, str | None]]:
    """The same on a Ray cluster, one core for each cell."""
    try:
        import ray
    except ImportError:
        raise BadInput("--ray needs Ray, which is not installed: pip install 'qqworld[cluster]'") from None
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False, include_dashboard=False)
    remote: Any = ray.remote(num_cpus=1)(_work_there)
    running = {remote.remote(words, str(Path.cwd())): name for name, words in commands.items()}
    try:
        while running:
            for done in ray.wait(list(running))[0]:
                yield running.pop(done), ray.get(done)
    finally:
        if started:
            ray.shutdown()


def _work_there(words: list[str], folder: str) -> str | None:
    """A cell on another host: the same folder, that host's Python."""
    done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, cwd=folder)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it failed"])[-1]


def main() -> int:
    settings = parse_command_line(Run, __doc__)
    try:
        return 1 if study(settings) else 0
    except KeyboardInterrupt:
        print("stopped: run the same command again to go on", file=sys.stderr)
        return 130


if __name__ == "__main__":
    run(main)
