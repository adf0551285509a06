"""Writes a run folder, which `models/run_folder.py` reads: whatever happens, the run can be resumed.

Everything is written under a temporary name and renamed. A checkpoint is one file, so that weights, optimiser and queue
are never of different steps; metrics after it are dropped on resume, because those steps are done again.
"""

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import safetensors.torch
import torch
from safetensors import SafetensorError

from envs.errors import BadInput
from models.run_folder import CHECKPOINT, CONFIG, ENCODER, METRICS, read_checkpoint, read_config, read_metrics

with contextlib.suppress(ImportError):
    import fcntl

LOCK = ".lock"
BEGUN = {ENCODER, LOCK, f"{CONFIG}.tmp"}
"""What may stand in a folder whose own run has not begun: the run of its encoder, and what a kill left behind."""


class RunFolder:
    """The files of one run at `path`; only the main process writes."""

    def __init__(self, path: Path, writes: bool = True):
        self.path = path
        self.writes = writes
        self.tensorboard: Any = None
        self._held: TextIO | None = None

    def open(self, config: dict[str, Any], free: set[str]) -> None:
        """Begin a run with `config`, or go on with the run that is there if only `free` settings differ."""
        stored = self.path / CONFIG
        if stored.exists():
            if other := differences(read_config(self.path), config, free):
                raise BadInput(f"{self.path} holds a run with other settings ({'; '.join(other)}): give another --out")
        # Processes that do not write may see it half made.
        elif self.writes and self.path.exists() and {item.name for item in self.path.iterdir()} - BEGUN:
            raise BadInput(f"{self.path} is not empty and not a run folder: give another --out")
        if self.writes:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise BadInput(f"cannot make the run folder {self.path}: {error.strerror}") from error
            self._lock()
            self.replace(CONFIG, lambda path: path.write_text(json.dumps(config, indent=2) + "\n"))

    def save(self, step: int, tensors: dict[str, torch.Tensor]) -> None:
        """Replace the checkpoint."""
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        self.replace(CHECKPOINT, lambda path: safetensors.torch.save_file(plain, path, {"step": str(step)}))

    def load(self) -> tuple[int, dict[str, torch.Tensor]] | None:
        """Step and tensors of the last checkpoint, or None before the first."""
        if not (self.path / CHECKPOINT).exists():
            return None
        try:
            return read_checkpoint(self.path)
        except BadInput as error:
            raise BadInput(f"{error}: delete it to start again, or give another --out") from error

    def resume_at(self, step: int) -> None:
        """Forget metrics of steps after `step`, which are done again, and get ready to log."""
        if not self.writes:
            return
        if (self.path / METRICS).exists():
            kept = [json.dumps(line) + "\n" for line in read_metrics(self.path) if line["step"] <= step]
            self.replace(METRICS, lambda path: path.write_text("".join(kept)))
        with contextlib.suppress(ImportError):
            from torch.utils.tensorboard import SummaryWriter

            self.tensorboard = SummaryWriter(str(self.path), purge_step=step + 1)

    def log(self, line: dict[str, Any]) -> None:
        """Append a line of numbers by part and name to the metrics, and to TensorBoard where it is installed."""
        with open(self.path / METRICS, "a") as file:
            file.write(json.dumps(line) + "\n")
        if self.tensorboard:
            for part, numbers in line.items():
                for name, value in numbers.items() if part != "step" else ():
                    self.tensorboard.add_scalar(f"{part}/{name}", value, line["step"])

    def replace(self, name: str, write: Callable[[Path], Any]) -> None:
        """Write the file `name` with `write(temporary path)`: whole or not at all."""
        temporary = self.path / f"{name}.tmp"
        try:
            write(temporary)
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())
            os.replace(temporary, self.path / name)
        except (OSError, SafetensorError) as error:
            temporary.unlink(missing_ok=True)
            raise BadInput(f"cannot write {self.path / name} ({error}): what was there before is untouched") from error

    def close(self) -> None:
        """Let another process train here."""
        if self._held:
            self._held.close()

    def _lock(self) -> None:
        self._held = open(self.path / LOCK, "w")  # noqa: SIM115 (held until `close` or the end of the process)
        if "fcntl" in globals():
            try:
                fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BadInput(f"another process trains in {self.path}: wait for it or give another --out") from None


def differences(there: dict[str, Any], here: dict[str, Any], free: set[str], prefix: str = "") -> list[str]:
    """In what two configurations differ, as readable phrases; `free` names do not count."""
    found = []
    for name in sorted({*there, *here} - free):
        old, new = there.get(name), here.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            found += differences(old, new, free, f"{prefix}{name}.")
        elif old != new:
            found.append(f"{prefix}{name} is {old} there, not {new}")
    return found
