"""What a person typed or handed over was wrong: one sentence, exit status 2. Nothing here needs a simulator."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import tyro

Settings = TypeVar("Settings")


class BadInput(ValueError):
    """Wrong input; its message is one sentence that says what was wrong, what was expected and what to do."""


def run(main: Callable[[], int | None]) -> None:
    """Run a command line's `main`; bad input becomes one sentence on stderr and exit status 2, never a traceback."""
    try:
        sys.exit(main() or 0)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def parse_command_line(
    settings: type[Settings],
    doc: str | None,
    arguments: Sequence[str] | None = None,
    default: Settings | None = None,
) -> Settings:
    """The command line as a `settings` dataclass; `--help` is its manual, and a word it does not know is bad input.

    Flags of a dataclass inside `settings` have no prefix. What no flag says is as in `default`.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(  # type: ignore[return-value]  # a default of None is no default
                settings,
                prog=_program(),
                description=doc,
                args=arguments,
                default=default,
                config=(tyro.conf.OmitArgPrefixes,),
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise BadInput(_sentence(said.getvalue())) from None


def flag_of(name: str, arguments: Sequence[str] | None = None) -> str | None:
    """What a command line says after `--name`, before it is parsed: defaults may depend on it."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == f"--{name}":
            return following
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
    return None


def _program() -> str:
    """How this program was called: `python -m training.train`, or the name of its file."""
    module = sys.modules["__main__"].__spec__
    return f"python -m {module.name.removesuffix('.__main__')}" if module else Path(sys.argv[0]).name


def _sentence(box: str) -> str:
    """The title and the first section of an error box as one line.

    The box is drawn with lines, or with hyphens where the terminal knows no others; a rule ends a section.
    """
    title = ""
    section: list[str] = []
    for line in box.splitlines():
        words = line.strip("│╭╮╰╯ ")
        rule = not words.strip("─-")
        if not title:
            title = words.strip("─ ")
        elif rule and section:
            break
        elif not rule:
            section.append(words)
    return f"{title.lower()}: {' '.join(section).removeprefix(f'{title}: ')} (see --help)"
