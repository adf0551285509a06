"""What a figure is: numbers from committed files, a drawing of them, and a sentence about them."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

COLOURS = {"qqworld": "C0", "lewm": "C3", "qqworld corrected": "C2", "visreg": "C1"}
SOURCE = "Source"
"""Entry of a PNG that names the numbers it was drawn from: another matplotlib may draw them a little differently."""

Numbers = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """A figure of the page."""

    name: str
    """Of its file, without .png."""
    title: str
    inches: tuple[float, float]
    gather: Callable[[Path], tuple[str, Numbers]]
    """From the folder of cells: how much is there (empty if all is), and the numbers to draw (empty if none are)."""
    draw: Callable[[Figure, Numbers], None]
    sentence: Callable[[Numbers], str]

    def path(self, cells: Path) -> Path:
        """The PNG, next to the page."""
        return cells / f"{self.name}.png"

    def save(self, cells: Path) -> Path | None:
        """Draw the figure, unless it is there already; its file, or None if there is nothing to draw yet."""
        _, numbers = self.gather(cells)
        path = self.path(cells)
        if not numbers:
            path.unlink(missing_ok=True)
            return None
        if drawn_from(path) != digest(numbers):
            figure = Figure(figsize=self.inches, layout="constrained")
            self.draw(figure, numbers)
            figure.savefig(path, dpi=90, metadata={SOURCE: digest(numbers)})
        return path

    def markdown(self, cells: Path) -> str:
        """The figure as a section of the page."""
        progress, numbers = self.gather(cells)
        lines = [f"## {self.title}", ""]
        lines += [progress, ""] if progress else []
        lines += [f"![{self.title}]({self.name}.png)", "", self.sentence(numbers), ""] if numbers else []
        return "\n".join(lines)

    def stale(self, cells: Path) -> bool:
        """Whether the PNG is not drawn from these cells."""
        numbers = self.gather(cells)[1]
        return drawn_from(self.path(cells)) != (digest(numbers) if numbers else None)


def digest(numbers: Numbers) -> str:
    """A name for the numbers of a figure, whose last digits may differ from machine to machine."""
    return hashlib.sha256(json.dumps(_rounded(numbers), sort_keys=True).encode()).hexdigest()[:16]


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return f"{value:.5g}" if isinstance(value, float) else value


def drawn_from(path: Path) -> str | None:
    """The digest of the numbers that a PNG was drawn from; None if there is no PNG."""
    if not path.exists():
        return None
    with Image.open(path) as picture:
        return str(picture.info.get(SOURCE, ""))
