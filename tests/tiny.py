"""A world model small enough to export in a blink, with weights that let every input through."""

import json
from pathlib import Path

import numpy as np
import safetensors.torch
import torch

import models
from export.package import package
from export.source import Source

torch.set_num_threads(1)  # tests run side by side

NETWORK = {
    "image_size": 16,
    "latent": 8,
    "channels": (4, 8),
    "hidden": 8,
    "width": 8,
    "depth": 2,
    "heads": 2,
    "mlp": 16,
}


def network(preset: str = "compact-transformer", seed: int = 0, **settings) -> models.WorldModel:
    """A network whose gates, which begin closed, are open."""
    torch.manual_seed(seed)
    model = models.build(preset, action_dim=2, **settings)
    for parameter in model.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    for module in model.modules():  # statistics of batches seen, as after training
        if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            module.running_mean.normal_(std=0.1)
            module.running_var.uniform_(0.5, 2.0)
    model.set_action_scale(torch.tensor([0.1, -0.2]), torch.tensor([0.5, 0.7]))
    return model.eval()


def proposals(latent: int, action_size: int, components: int) -> models.Proposals:
    """A proposal network with weights that let every input through."""
    torch.manual_seed(0)
    made = models.Proposals(latent, action_size, components, width=16, depth=2, dropout=0.1)
    for tensor in (*made.parameters(), *made.buffers()):
        tensor.data += 0.1 * torch.rand_like(tensor)
    return made.eval()


def source(preset: str = "compact-transformer", seed: int = 0, components: int = 0, **settings) -> Source:
    """A network as if it had been trained; with some `components`, proposals too."""
    settings = settings or ({} if preset == "paper" else NETWORK)
    model = network(preset, seed, **settings)
    return Source(
        model=model,
        task="two-room",
        look="paper" if preset == "paper" else "fast",
        preset=preset,
        network=models.settings(preset, **settings),
        objective="qqworld",
        data="0123456789abcdef",
        steps=7,
        seed=seed,
        versions={"torch": "2"},
        proposals=proposals(model.latent, model.action_block * 2, components) if components else None,
    )


def content(dtype=np.float32, horizon: int = 4, **settings) -> bytes:
    """The bytes of a tiny world-model file."""
    return package(source(**settings), horizon, dtype, planner={}, licence="MIT")


def file(folder: Path, **settings) -> Path:
    """A tiny world-model file in `folder`."""
    path = folder / "tiny.onnx"
    path.write_bytes(content(**settings))
    return path


def run_folder(folder: Path, **settings) -> Path:
    """A run folder as the trainer writes it, with a tiny network in it."""
    made = source(**settings)
    config = {
        "env": made.task,
        "objective": made.objective,
        "preset": made.preset,
        "seed": made.seed,
        "network": made.network,
        "action_dim": made.model.action_dim,
        "data": {"fingerprint": made.data, "task": made.task, "look": made.look},
        "versions": made.versions,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {f"model.{name}": tensor.contiguous() for name, tensor in made.model.state_dict().items()}
    safetensors.torch.save_file(
        tensors | {"optimiser.0.step": torch.ones(1)}, folder / "checkpoint.safetensors", {"step": str(made.steps)}
    )
    if made.proposals:
        _write_proposals(folder / "proposals", made.proposals, made.model.encoder_fingerprint())
    return folder


def _write_proposals(folder: Path, network: models.Proposals, encoder: str) -> None:
    """A folder of proposals as the trainer writes it."""
    sizes = {"latent": network.latent, "action_size": network.action_size, "components": network.components}
    config = {
        "network": sizes | {"width": 16, "depth": 2, "dropout": 0.1},
        "world_model": {"step": 7, "encoder": encoder},
    }
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    tensors = network.state_dict() | {"optimiser.0.step": torch.ones(1)}
    safetensors.torch.save_file(tensors, folder / "checkpoint.safetensors", {"step": "5"})
