"""Every command of the project answers a mistyped flag alike, and calls itself what was typed."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ROOMS = ("agent", "envs", "export", "study", "training")


def commands() -> list[str]:
    """What stands behind `python` in every command of the project."""
    files = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]
    modules = [file for file in files if 'if __name__ == "__main__":' in file.read_text()]
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__") for file in modules]
    return ["play.py", *(f"-m {name}" for name in names)]


def call(command: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *command.split(), *words], cwd=ROOT, capture_output=True, text=True)


def test_the_published_commands_are_among_them():
    published = ("agent.bench", "agent.evaluate", "envs.collect", "export", "training.train")
    assert {f"-m {name}" for name in published} < set(commands())


@pytest.mark.parametrize("command", commands())
def test_a_mistyped_flag_is_one_sentence_and_status_two(command):
    done = call(command, "--no-such-flag")

    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(
        ("error: unrecognized options: ", "error: required options: ", "error: missing argument: ")
    )
    assert done.stderr.endswith(" (see --help)\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "name"),
    [("play.py", "play.py"), ("-m envs.collect", "python -m envs.collect"), ("-m export", "python -m export")],
)
def test_help_begins_with_the_command_that_was_typed(command, name):
    done = call(command, "--help")

    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: {name} ")
