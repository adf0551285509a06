"""Write docs/study/README.md and its figures from committed cells.

    python -m study.page
    python -m study.page --check    exit status 1, and what differs from the cells

A table or figure whose cells are not all there says how many are.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from envs.errors import parse_command_line, run
from study.cells import CELLS, PLANS, read
from study.figures.__main__ import PICTURES
from study.tables.__main__ import TABLES

ORDER = (
    *("confirm", "confirm-pusht", "strength", "dose-response", "table-1", "table-2", "figure-1", "figure-2"),
    *("table-3", "figure-3", "table-4", "bias-variance"),
)
"""Tables and figures by name: first the study's own question, then the paper's in their order."""
INTRODUCTION = """# The study: is QQ better than EP?

Made by `python -m study.page` from the cells in this folder, which `python -m study.run study/plans/NAME.toml` leaves:
a cell is one training run with its settings, errors, probes, normality and outcomes. The plans say beforehand what is
compared. Numbers called the paper's are those that it prints.

Success is in per cent: mean ± standard deviation (with n - 1) over training runs, and in brackets the Wilson 95 %
interval of all pairs, which does not know how much runs differ. Differences between objectives are taken by training
run, paired by seed. `lewm` is the published planner (two open-loop plans, cost of the last block; candidates are kept
in the task's box, which published code leaves to the task), `cem` the tuned one. First hit counts a goal reached at any
step, last step one that is reached at the end.
"""


@dataclass(frozen=True)
class Page:
    """Write docs/study/README.md and its figures from committed cells."""

    cells: Path = CELLS
    """Folder of the cells, one folder a plan in it; the page is written there too."""
    check: bool = False
    """Change nothing: say what differs from the cells, with exit status 1."""


def page(cells: Path) -> str:
    """The page's text."""
    parts = [INTRODUCTION]
    for path in sorted(PLANS.glob("*.toml")):
        if path.stem != "smoke":
            study = read(path.stem, cells)
            done = study.progress.rstrip(".") or f"{len(study.finished)} cells"
            parts.append(f"- `{path.stem}` ({done}): {study.plan.about.question}")
    parts.append("")
    for name in ORDER:
        parts.append(PICTURES[name].markdown(cells) if name in PICTURES else TABLES[name](cells).markdown())
    return "\n".join(parts)


def main(arguments: list[str] | None = None) -> int:
    settings = parse_command_line(Page, __doc__, arguments)
    path, text = settings.cells / "README.md", page(settings.cells)
    differing = [path] if not path.exists() or path.read_text() != text else []
    if settings.check:
        differing += [picture.path(settings.cells) for picture in PICTURES.values() if picture.stale(settings.cells)]
        for one in differing:
            print(f"{os.path.relpath(one)} differs from the cells: run `python -m study.page`", file=sys.stderr)
        return 1 if differing else 0
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    for picture in PICTURES.values():
        picture.save(settings.cells)
    print(f"wrote {os.path.relpath(path)} and its figures")
    return 0


if __name__ == "__main__":
    run(main)
