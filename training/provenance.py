"""What a run folder says about its run."""

import dataclasses
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from envs.dataset.reader import Dataset
from training.config import Config
from training.phases.learner import Learner

FREE = {"steps", "device", "threads", "checkpoint_every", "versions", "git", "path", "look"}
"""Settings that may change when a run goes on: they do not change what it computes.

`look` is among them because older runs did not keep it; the data's fingerprint stands for it.
"""


def describe(config: Config, data: Dataset, learner: Learner, network: dict[str, Any], windows: int) -> dict[str, Any]:
    """What `config.json` holds: settings in full, the data's identity, and where it all came from."""
    chosen = {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if field.name not in ("data", "out", "network", "phases", "proposing")
    }
    inherited = config.inherited()
    return _plain(
        {
            **chosen,
            "schedule": config.schedule or config.steps,
            "lr": config.peak_lr(),
            "weight_decay": config.decay(),
            "regulariser": learner.objective.settings,
            "network": network,
            "encoder_steps": inherited.get("encoder_steps") or inherited.get("steps"),
            "parameters": sum(parameter.numel() for parameter in learner.model.parameters()),
            "action_dim": data.action_dim,
            "action_mean": learner.model.action_mean.tolist(),
            "action_std": learner.model.action_std.tolist(),
            "data": {
                "path": config.data_path,
                "fingerprint": data.fingerprint,
                "task": data.task,
                "look": data.look,
                "episodes": len(data.length),
                "frames": int(data.length.sum()),
                "windows": windows,
                "frame_skip": data.frame_skip,
            },
            "versions": versions(),
            "git": git_revision(),
        }
    )


def versions() -> dict[str, str]:
    """The libraries that a run depends on."""
    libraries = {name: metadata.version(name) for name in ("torch", "numpy", "h5py", "safetensors")}
    return libraries | {"python": platform.python_version()}


def git_revision() -> str | None:
    """The commit this code is at, if it is in a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _plain(value: Any) -> Any:
    """A value as JSON gives it back: tuples as lists, paths as text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
