"""Train every objective on the same data for the same number of steps, and put their held-out measurements in a table.

    python -m training.measures.compare --env two-room --data data/two-room.h5 --steps 2000 --out runs/compare

Stopped at any moment, the same command goes on. OUT gets a run folder per objective, table.md, table.json and
compare.png.
"""

import json
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from envs.errors import parse_command_line, run
from models.run_folder import read_metrics
from training.config import Config, Network
from training.data.windows import split
from training.measures.held_out import HeldOut
from training.objectives import OBJECTIVES
from training.phases.trainer import Diverged, Trainer

FRAMES, SLICES = 20_000, 6144  # as the paper measures normality
COLUMNS = {
    "error_1": "1-step error",
    "error_5": "5-step error",
    "error_5_to_copy": "5-step error / copy",
    "change_1": "change by one block",
    "qq_rmse": "QQ RMSE",
    "ks": "KS",
    "ep": "EP",
    "tail_rate": "tail rate (0.1)",
    "effective_rank": "effective rank",
    "std_mean": "mean std",
}


@dataclass(frozen=True)
class Compare:
    """What to compare; every objective has the weights published for the task."""

    env: str
    """Task the data must be of."""
    data: Path
    """Dataset file (HDF5)."""
    out: Path
    """Folder for the runs and the table."""
    objectives: tuple[str, ...] = tuple(OBJECTIVES)
    """Objectives to train."""
    preset: str = "compact"
    """Network."""
    steps: int = 2000
    """Steps of each run."""
    batch: int = 128
    """Windows per step."""
    lr: float | None = None
    """Peak learning rate; default: the trainer's."""
    seed: int = 0
    """Seed of each run."""
    eval_every: int = 500
    """Steps between two measurements during training."""
    network: Network = field(default_factory=Network)

    def config(self, objective: str) -> Config:
        """The configuration of one objective's run."""
        return Config(
            env=self.env,
            data=self.data,
            out=self.out / objective,
            objective=objective,
            preset=self.preset,
            steps=self.steps,
            batch=self.batch,
            lr=self.lr,
            seed=self.seed,
            eval_every=self.eval_every,
            network=self.network,
        )


def measure(settings: Compare, objective: str) -> dict[str, float] | None:
    """Train one objective (or go on, or just load it) and measure it as the paper does; None if told to stop."""
    trainer = Trainer(settings.config(objective), lambda text: tqdm.write(f"{objective}: {text}", file=sys.stderr))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: trainer.stop())
    tqdm.write(f"{objective}: from step {trainer.step} to {settings.steps}", file=sys.stderr)
    trainer.run()
    if trainer.step < settings.steps:
        return None
    model, data = trainer.learner.model, trainer.data
    train, held = split(data)
    fill = model.action_mean.cpu().numpy()
    return HeldOut(data, train, held, fill, model.action_block, FRAMES).measure(model, SLICES)


def table(found: dict[str, dict[str, float]], what: str = "objective") -> str:
    """The measurements as a markdown table, one row an objective (or `what` else); probes where all have them."""
    shared = set.intersection(*(set(measured) for measured in found.values()))
    factors = [name for name in next(iter(found.values())) if name.startswith("r2_linear/") and name in shared]
    header = [what, *COLUMNS.values(), *(f"R² {name.removeprefix('r2_linear/')}" for name in factors)]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for objective, measured in found.items():
        numbers = [measured.get(name, float("nan")) for name in (*COLUMNS, *factors)]
        lines.append(f"| {objective} | " + " | ".join(f"{number:.3g}" for number in numbers) + " |")
    return "\n".join(lines) + "\n"


def draw(settings: Compare, path: Path) -> None:
    """Prediction error, tail and rank of all runs over the steps, as one picture."""
    from matplotlib.figure import Figure

    panels = {"error_5": "5-step error / variance", "tail_rate": "tail rate", "effective_rank": "effective rank"}
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    for axes, (key, title) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        for objective in settings.objectives:
            lines = [line for line in read_metrics(settings.out / objective) if "held_out" in line]
            points: dict[int, Any] = {line["step"]: line["held_out"].get(key) for line in lines if line["step"]}
            axes.plot(list(points), list(points.values()), label=objective)
        axes.set_title(title)
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
    figure.axes[0].set_yscale("log")
    figure.axes[1].axhline(0.1, color="black", linestyle=":")
    figure.axes[2].legend(fontsize="small")
    figure.savefig(path, dpi=80)


def main(arguments: list[str] | None = None) -> int:
    settings = parse_command_line(Compare, __doc__, arguments)
    found = {}
    for objective in settings.objectives:
        try:
            measured = measure(settings, objective)
        except Diverged as error:
            tqdm.write(f"{objective}: {error}", file=sys.stderr)
            continue
        if measured is None:
            tqdm.write("stopped: run the same command again to go on", file=sys.stderr)
            return 130
        found[objective] = measured
        (settings.out / "table.json").write_text(json.dumps(found, indent=2) + "\n")
        (settings.out / "table.md").write_text(table(found))
    draw(settings, settings.out / "compare.png")
    print(table(found))
    return 0


if __name__ == "__main__":
    run(main)
