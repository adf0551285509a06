"""Put the figures into the documents: README.md, docs/results/README.md and docs/objectives.md.

    python -m study.documents            or: make docs
    python -m study.documents --check    exit status 1, and the names of the files that differ

A document holds blocks between `<!-- name -->` and `<!-- /name -->`; study/document_blocks.py makes each from committed
data alone. What stands outside of them is written by hand.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from envs.errors import BadInput, parse_command_line, run
from study.document_blocks import BLOCKS

ROOT = Path(__file__).parent.parent
DOCUMENTS = tuple(ROOT / name for name in ("README.md", "docs/results/README.md", "docs/objectives.md"))
MARKER = re.compile(r"^<!-- (/?)([\w-]+) -->$", re.MULTILINE)


@dataclass(frozen=True)
class Documents:
    """Put the figures into the documents."""

    check: bool = False
    """Change nothing: say which files differ from the data, with exit status 1."""


def fill(text: str, blocks: Mapping[str, Callable[[], str]]) -> str:
    """`text` with every block made again; markers that do not pair up, or name no block, are refused."""
    markers = list(MARKER.finditer(text))
    parts, end = [], 0
    for begin, stop in zip(markers[::2], [*markers[1::2], None], strict=False):
        name = begin[2]
        if begin[1] or stop is None or not stop[1] or stop[2] != name:
            raise BadInput(f"the marker {begin[0]} is not followed by its end <!-- /{name} -->")
        if name not in blocks:
            raise BadInput(f"there is no block called {name}: choose among {', '.join(blocks)}")
        parts += [text[end : begin.end()], "\n\n", blocks[name]().strip(), "\n\n", stop[0]]
        end = stop.end()
    return "".join([*parts, text[end:]])


def main(arguments: list[str] | None = None) -> int:
    settings = parse_command_line(Documents, __doc__, arguments)
    filled = {path: fill(path.read_text(), BLOCKS) for path in DOCUMENTS}
    differing = [path for path, text in filled.items() if text != path.read_text()]
    for path in differing:
        name = os.path.relpath(path)
        if settings.check:
            print(f"{name} differs from the data: run `make docs`", file=sys.stderr)
        else:
            path.write_text(filled[path])
            print(f"wrote {name}")
    return 1 if settings.check and differing else 0


if __name__ == "__main__":
    run(main)
