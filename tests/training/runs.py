"""Small runs of the trainer for tests, and what they leave behind."""

import dataclasses
import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from training.config import Config, Network
from training.phases.trainer import Trainer

torch.set_num_threads(1)  # the test workers already share the cores

TINY = Network(latent=16, image_size=32, channels=(8, 16), stem=4, hidden=32, width=32, depth=1, heads=2, mlp=32)


def arguments(config: Config) -> list[str]:
    """The command line that means `config`."""
    words = []
    for group in (config, config.network, config.regulariser, config.proposing):
        for field in dataclasses.fields(group):
            value = getattr(group, field.name)
            if dataclasses.is_dataclass(value) or value in (None, ()) or isinstance(value, bool):
                continue
            listed = value if isinstance(value, tuple) else [value]
            words += [f"--{field.name.replace('_', '-')}", *map(str, listed)]
    return words


def go(config: Config) -> Trainer:
    trainer = Trainer(config)
    trainer.run(bar=False)
    return trainer


def metrics(folder: Path) -> list[dict]:
    """Every line of the metrics without the clock."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{part: value for part, value in line.items() if part != "speed"} for line in lines]


def same_run(one: Path, other: Path) -> None:
    first, second = load_file(one / "checkpoint.safetensors"), load_file(other / "checkpoint.safetensors")
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
    assert metrics(one) == metrics(other)


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    """The world model's tensors in a checkpoint."""
    return {n: t for n, t in load_file(folder / "checkpoint.safetensors").items() if n.startswith("model.")}
