"""Figure 3: trajectories of Two-Room as a linear map reads them from the shipped models' latents."""

import json
from pathlib import Path

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from study.figures.base import Numbers, Picture
from study.readout import MODELS, cumulative_rmse
from study.tables.format import NAMES

MARGIN = 5
"""Room around a trajectory, in px."""


def gather(cells: Path) -> tuple[str, Numbers]:
    """What `python -m study.readout` left."""
    path = cells / "readout" / "two-room.json"
    if not path.exists():
        return "Not there yet: run `python -m study.readout`.", {}
    return "", json.loads(path.read_text())


def draw(figure: Figure, numbers: Numbers) -> None:
    """A row for each model, a column for each episode; colour is the error so far."""
    episodes = list(numbers["truth"])
    truth = {number: np.array(numbers["truth"][number]) for number in episodes}
    decoded = {name: {n: np.array(numbers["models"][name]["decoded"][n]) for n in episodes} for name in MODELS}
    errors = {name: {n: cumulative_rmse(decoded[name][n], truth[n]) for n in episodes} for name in MODELS}
    most = max(error.max() for one in errors.values() for error in one.values())
    grid = figure.subplots(len(MODELS), len(episodes), squeeze=False)
    for name, row in zip(MODELS, grid, strict=True):
        for number, axes in zip(episodes, row, strict=True):
            path, error = decoded[name][number], errors[name][number]
            axes.plot(*truth[number].T, color="grey", linewidth=3, alpha=0.6)
            axes.plot(*path.T, color="black", linewidth=0.4)
            axes.scatter(*path.T, c=error, s=12, vmin=0, vmax=most, cmap="viridis")
            axes.set_title(f"{NAMES[name]}, episode {number}: RMSE {error[-1]:.1f} px", fontsize="medium")
            across, down = np.concatenate([truth[number], *(one[number] for one in decoded.values())]).T
            axes.set(aspect="equal", xlim=_around(across), ylim=_around(down)[::-1])
    scale = ScalarMappable(Normalize(0, most), "viridis")
    figure.colorbar(scale, ax=grid, label="cumulative RMSE in px")


def _around(values: np.ndarray) -> tuple[float, float]:
    return float(values.min()) - MARGIN, float(values.max()) + MARGIN


def sentence(numbers: Numbers) -> str:
    """The errors over all test episodes, and how little one file of each can say."""
    models = numbers["models"]
    ours, theirs = (np.array(models[name]["by_episode"]) for name in ("qqworld", "lewm"))
    lower = models["qqworld"]["rmse"] < models["lewm"]["rmse"]
    return (
        f"Over the {len(ours)} test episodes RMSE is {models['qqworld']['rmse']:.1f} px with QQ and "
        f"{models['lewm']['rmse']:.1f} px with EP, and lower with QQ in {int(np.sum(ours < theirs))} of them: the "
        f"paper's order is {'seen' if lower else 'not seen'} here, in one training run of each, which says nothing "
        "about another run. Grey is the true trajectory; the first two test episodes are shown."
    )


PICTURES = (Picture("figure-3", "Figure 3: positions read from latents", (8, 7), gather, draw, sentence),)
