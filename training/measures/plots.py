"""Draws a run's metrics as one picture."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PANELS = (
    ("loss", "train", None, True),
    ("held-out error / latent variance", "held_out", ("error_1", "error_5", "change_1", "change_5"), True),
    ("held-out error / copying", "held_out", ("error_1_to_copy", "error_5_to_copy"), True),
    ("distance from a normal", "held_out", ("qq_rmse", "ks", "tail_rate"), True),
    ("spread", "held_out", ("std_min", "std_mean", "std_max"), False),
    ("effective rank", "held_out", ("effective_rank",), False),
    ("linear probe R²", "held_out", "r2_linear/", False),
    ("MLP probe R²", "held_out", "r2_mlp/", False),
)
"""Title, part of the metrics line, which of its numbers (None: the loss terms; text: a prefix), logarithmic."""


def draw(lines: list[dict[str, Any]], path: Path, title: str) -> None:
    """Draw the metrics `lines` into the PNG at `path`."""
    from matplotlib.figure import Figure  # slow to import, and a run without a picture does not need it

    figure = Figure(figsize=(16, 7))
    figure.subplots_adjust(0.04, 0.07, 0.99, 0.9, 0.16, 0.32)  # a layout engine would take longer than the drawing
    figure.suptitle(title)
    for axes, (name, part, wanted, logarithmic) in zip(figure.subplots(2, 4).flat, PANELS, strict=True):
        rows = [line for line in lines if part in line]
        for key in _keys(rows, part, wanted):
            values = [line[part].get(key, math.nan) for line in rows]
            if logarithmic:
                values = [value if value > 0 else math.nan for value in values]
            label = key.removeprefix(wanted) if isinstance(wanted, str) else key
            axes.plot([line["step"] for line in rows], values, label=label, linewidth=1)
        if logarithmic and rows:
            axes.set_yscale("log")
        if isinstance(wanted, str):
            axes.set_ylim(-0.1, 1.05)
        axes.set_title(name)
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
        if axes.lines and len(axes.lines) <= 12:
            axes.legend(fontsize="small")
    figure.savefig(path, dpi=80, format="png")


def _keys(rows: list[dict[str, Any]], part: str, wanted: Iterable[str] | str | None) -> list[str]:
    """The numbers of `part` that a panel shows, in the order of the log."""
    keys = list(rows[-1][part]) if rows else []
    if wanted is None:
        return [key for key in keys if key == "loss" or key.endswith("_weighted") or key == "prediction"]
    if isinstance(wanted, str):
        return [key for key in keys if key.startswith(wanted)]
    return [key for key in wanted if key in keys]
