"""A run folder: `config.json`, `metrics.jsonl`, `checkpoint.safetensors`; whatever happens, it can be resumed.

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

with contextlib.suppress(ImportError):
    import fcntl

CONFIG, METRICS, CHECKPOINT = "config.json", "metrics.jsonl", "checkpoint.safetensors"


class RunFolder:
    """The files of one run at `path`; only the main process writes."""

    def __init__(self, path: Path, writes: bool = True):
        self.path, self.writes = Path(path), writes
        self.tensorboard: Any = None
        self._held: TextIO | None = None

    def open(self, config: dict[str, Any], free: set[str]) -> None:
        """Begin a run with `config`, or go on with the run that is there if only `free` settings differ."""
        stored = self.path / CONFIG
        if stored.exists():
            if other := differences(self.config(), config, free):
                raise BadInput(f"{self.path} holds a run with other settings ({'; '.join(other)}): give another --out")
        elif self.writes and self.path.exists() and any(self.path.iterdir()):  # others may see it half made
            raise BadInput(f"{self.path} is not empty and not a run folder: give another --out")
        if self.writes:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise BadInput(f"cannot make the run folder {self.path}: {error.strerror}") from error
            self._lock()
            self.replace(CONFIG, lambda path: path.write_text(json.dumps(config, indent=2) + "\n"))

    def config(self) -> dict[str, Any]:
        """What the run was started with."""
        try:
            return json.loads((self.path / CONFIG).read_text())
        except (OSError, ValueError) as error:
            raise BadInput(f"{self.path / CONFIG} cannot be read: give another --out") from error

    def save(self, step: int, tensors: dict[str, torch.Tensor]) -> None:
        """Replace the checkpoint."""
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        self.replace(CHECKPOINT, lambda path: safetensors.torch.save_file(plain, path, {"step": str(step)}))

    def load(self) -> tuple[int, dict[str, torch.Tensor]] | None:
        """Step and tensors of the last checkpoint, or None before the first."""
        path = self.path / CHECKPOINT
        if not path.exists():
            return None
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                step = int(file.metadata()["step"])
                return step, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise BadInput(f"{path} is damaged: delete it to begin anew, or give another --out") from error

    def metrics(self) -> list[dict[str, Any]]:
        """Every complete line of the metrics."""
        path = self.path / METRICS
        lines = []
        for line in path.read_text().splitlines() if path.exists() else []:
            with contextlib.suppress(ValueError):  # a kill can cut the last line
                lines.append(json.loads(line))
        return lines

    def last_measured(self) -> dict[str, float]:
        """What was measured last on held-out episodes."""
        return next((line["held_out"] for line in reversed(self.metrics()) if "held_out" in line), {})

    def resume_at(self, step: int) -> None:
        """Forget metrics of steps after `step`, which are done again, and get ready to log."""
        if not self.writes:
            return
        if (self.path / METRICS).exists():
            kept = [json.dumps(line) + "\n" for line in self.metrics() if line["step"] <= step]
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
        self._held = open(self.path / ".lock", "w")  # noqa: SIM115 (held until `close` or the end of the process)
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
