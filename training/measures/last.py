"""What run folders measured last on held-out episodes, as one table.

python -m training.measures.last pretrained/*/qqworld pretrained/*/lewm
"""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from envs.errors import BadInput, parse_command_line, run
from models.run_folder import last_measured
from training.measures.compare import table


@dataclass(frozen=True)
class Last:
    """What run folders measured last on held-out episodes."""

    runs: Positional[tuple[Path, ...]]
    """Run folders, one row of the table each."""


def last(settings: Last) -> str:
    """The table of the runs, in their order."""
    if not settings.runs:
        raise BadInput("name one run folder at least")
    found = {str(path): last_measured(path) for path in settings.runs}
    for path, measured in found.items():
        if not measured:
            raise BadInput(f"{path} holds no measurements: give a run folder of the trainer")
    return table(found, what="run")


def main() -> None:
    print(last(parse_command_line(Last, __doc__)))


if __name__ == "__main__":
    run(main)
