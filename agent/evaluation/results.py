"""The folder of an evaluation: its configuration, its episodes, and files that are replaced as a whole."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.episodes.outcome import append_line, read_lines
from envs import BadInput

Key = tuple[str, int, int]
"""Names an episode: subject, seed and pair."""
BULKY = ("actions", "pushes", "start", "goal", "traceback", "versions")


class Results:
    """A folder in which an evaluation goes on from where it stopped."""

    def __init__(self, folder: Path, configuration: dict[str, Any]):
        """Make the folder, or check that what it holds was measured in the same way."""
        self.folder, self.episodes = folder, folder / "episodes.jsonl"
        path = folder / "config.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            before = json.loads(path.read_text()) if path.exists() else configuration
            models = before["models"] | configuration["models"]
            differing = [key for key in configuration if key != "models" and before.get(key) != configuration[key]]
            differing += [
                name for name in configuration["models"] if before["models"].get(name, models[name]) != models[name]
            ]
            if not differing:
                self.write("config.json", json.dumps(before | {"models": models}, indent=1))
                self._end_last_line()
        except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise BadInput(
                f"{folder} cannot hold results ({type(error).__name__}: {error}): give another --out"
            ) from error
        if differing:
            raise BadInput(
                f"{folder} holds results of another configuration (other {differing[0]}): give another --out"
            )

    def append(self, line: dict[str, Any]) -> None:
        """Add one episode."""
        append_line(self.episodes, line)

    def lines(self) -> dict[Key, dict[str, Any]]:
        """The newest line of every episode, so that none counts twice, without what only a replay needs."""
        slim = ({name: value for name, value in line.items() if name not in BULKY} for line in self._read())
        return {key(line): line for line in slim}

    def whole(self, keys: set[Key]) -> list[dict[str, Any]]:
        """The newest lines of a few episodes with everything in them."""
        found = {key(line): line for line in self._read() if key(line) in keys}
        return [found[one] for one in sorted(found)]

    def write(self, name: str, text: str) -> None:
        """Replace a file as a whole, so that an interruption leaves the old one."""
        partial = self.folder / f"{name}.partial"
        partial.write_text(text)
        os.replace(partial, self.folder / name)

    def _read(self) -> Iterator[dict[str, Any]]:
        return (line for line in read_lines(self.episodes) if {"subject", "seed", "pair"} <= line.keys())

    def _end_last_line(self) -> None:
        """A line that a crash cut short must not swallow the next one."""
        if self.episodes.exists() and (data := self.episodes.read_bytes()) and not data.endswith(b"\n"):
            with self.episodes.open("ab") as file:
                file.write(b"\n")


def key(line: dict[str, Any]) -> Key:
    """The name of a line's episode."""
    return line["subject"], line["seed"], line["pair"]
