"""What run folders measured last on held-out episodes, as one table.

python -m training.measures.last pretrained/*/qqworld pretrained/*/lewm
"""

from pathlib import Path
from typing import Annotated

import tyro

from envs.errors import BadInput, run
from training.measures.compare import table
from training.run_folder import RunFolder


def last(runs: Annotated[tuple[Path, ...], tyro.conf.Positional]) -> str:
    """The table of `runs`, one row each, in their order."""
    if not runs:
        raise BadInput("name one run folder at least")
    found = {str(path): RunFolder(path).last_measured() for path in runs}
    for path, measured in found.items():
        if not measured:
            raise BadInput(f"{path} holds no measurements: give a run folder of the trainer")
    return table(found, what="run")


def main() -> None:
    print(tyro.cli(last, description=__doc__))


if __name__ == "__main__":
    run(main)
