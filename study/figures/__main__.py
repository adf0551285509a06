"""Draw the paper's figures and the study's own from committed cells, as PNG next to docs/study/README.md.

    python -m study.figures

A figure that is there and shows these cells is left alone. One without cells is not drawn.
"""

from dataclasses import dataclass
from pathlib import Path

from envs.errors import parse_command_line, run
from study.cells import CELLS
from study.figures import latents, law, readout, strength

PICTURES = {
    picture.name: picture for picture in (*latents.PICTURES, *readout.PICTURES, *strength.PICTURES, *law.PICTURES)
}
"""Every figure by name."""


@dataclass(frozen=True)
class Figures:
    """Draw the paper's figures and the study's own from committed cells."""

    cells: Path = CELLS
    """Folder of the cells, one folder a plan in it; the figures are written there too."""


def main(arguments: list[str] | None = None) -> int:
    settings = parse_command_line(Figures, __doc__, arguments)
    for name, picture in PICTURES.items():
        path = picture.save(settings.cells)
        print(f"{name}: {path or picture.gather(settings.cells)[0]}")
    return 0


if __name__ == "__main__":
    run(main)
