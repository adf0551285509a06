"""Print the paper's tables and the study's own, from committed cells, beside the paper's numbers.

    python -m study.tables                   all of them, as Markdown
    python -m study.tables --only table-4

A table whose cells are not all there says how many are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from envs.errors import BadInput, parse_command_line, run
from study.cells import CELLS, read
from study.tables import confirm, latents, planning, queue, strength
from study.tables.format import Table

TABLES: dict[str, Callable[[Path], Table]] = {
    "table-1": lambda cells: planning.table(read("table-1", cells)),
    "table-2": lambda cells: latents.normality_table(read("table-1", cells)),
    "table-3": lambda cells: latents.probe_table([read("confirm-pusht", cells), read("table-1", cells)]),
    "table-4": lambda cells: queue.table(read("batch-queue", cells)),
    "strength": lambda cells: strength.table(read("dose-response", cells)),
    "confirm": lambda cells: confirm.table(read("confirm", cells)),
    "confirm-pusht": lambda cells: confirm.table(read("confirm-pusht", cells)),
}
"""Name on the command line to what makes it from a folder of cells."""


@dataclass(frozen=True)
class Tables:
    """Print the paper's tables and the study's own, from committed cells."""

    only: tuple[str, ...] = ()
    """Tables to print: table-1 to table-4, strength, confirm, confirm-pusht (default: all)."""
    cells: Path = CELLS
    """Folder of the cells, one folder a plan in it."""


def main(arguments: list[str] | None = None) -> int:
    settings = parse_command_line(Tables, __doc__, arguments)
    if unknown := [name for name in settings.only if name not in TABLES]:
        raise BadInput(f"unknown table '{unknown[0]}': choose among {', '.join(TABLES)}")
    for name in settings.only or TABLES:
        print(TABLES[name](settings.cells).markdown())
    return 0


if __name__ == "__main__":
    run(main)
