"""Published LeWM checkpoints: their tensors under our names.

A checkpoint is a folder with `weights.pt` (or a safetensors file) and `config.json`, or such a file alone. Its encoder
is a Hugging Face ViT, whose modules were renamed in transformers 5; both generations of names are understood. What a
checkpoint does not hold is the mean and spread of the actions it was trained on.
"""

import json
import pickle
import re
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

import envs
import models
from envs.dataset.reader import read_actions
from envs.errors import BadInput
from export.source import Source
from models import WorldModel

NAMES = [
    (r"^encoder\.patches", "encoder.embeddings.patch_embeddings.projection"),
    (r"^encoder\.class_token", "encoder.embeddings.cls_token"),
    (r"^encoder\.position", "encoder.embeddings.position_embeddings"),
    (r"^encoder\.norm", "encoder.layernorm"),
    (r"^(projector|pred_proj)\.", r"\1.net."),
    (r"^action_encoder\.squeeze", "action_encoder.patch_embed"),
    (r"^predictor\.position", "predictor.pos_embedding"),
    (r"^predictor\.norm", "predictor.transformer.norm"),
    (r"^predictor\.blocks\.(\d+)\.attention\.(qkv|out)", r"predictor.transformer.layers.\1.attn.to_\2"),
    (r"^predictor\.blocks\.(\d+)\.attention\.norm", r"predictor.transformer.layers.\1.attn.norm"),
    (r"^predictor\.blocks\.(\d+)\.mlp", r"predictor.transformer.layers.\1.mlp.net"),
    (r"^predictor\.blocks\.(\d+)\.modulation", r"predictor.transformer.layers.\1.adaLN_modulation"),
    (r"^(encoder\.blocks\.\d+)\.norm1", r"\1.layernorm_before"),
    (r"^(encoder\.blocks\.\d+)\.norm2", r"\1.layernorm_after"),
]
"""Our names to theirs, but for the parts of the encoder's blocks."""

GENERATIONS = {
    "transformers 4": [
        (r"^(encoder\.blocks\.\d+)\.(query|key|value)", r"\1.attention.attention.\2"),
        (r"^(encoder\.blocks\.\d+)\.out", r"\1.attention.output.dense"),
        (r"^(encoder\.blocks\.\d+)\.mlp\.0", r"\1.intermediate.dense"),
        (r"^(encoder\.blocks\.\d+)\.mlp\.2", r"\1.output.dense"),
        (r"^encoder\.blocks", "encoder.encoder.layer"),
    ],
    "transformers 5": [
        (r"^(encoder\.blocks\.\d+)\.(q|k|v)(uery|ey|alue)", r"\1.attention.\2_proj"),
        (r"^(encoder\.blocks\.\d+)\.out", r"\1.attention.o_proj"),
        (r"^(encoder\.blocks\.\d+)\.mlp\.0", r"\1.mlp.fc1"),
        (r"^(encoder\.blocks\.\d+)\.mlp\.2", r"\1.mlp.fc2"),
        (r"^encoder\.blocks", "encoder.layers"),
    ],
}

ACTION_STATISTICS = {
    "pusht": ([-0.0087, 0.0068], [0.2019, 0.2002]),
    "reacher": ([0.0, 0.0], [0.5767, 0.5767]),
}
"""Mean and standard deviation of the actions in the published data, where they are known."""

ARCHITECTURE: dict[str, dict[str, Any]] = {
    "encoder": {"size": "tiny", "patch_size": 14},
    "predictor": {"depth": 6, "heads": 16, "dim_head": 64},
}
"""What `config.json` must say where it says it; the rest shows in the shapes of the weights."""

OWN = ("pixel_mean", "pixel_std", "action_mean", "action_std")


def read_lewm(path: Path, task: str, data: Path | None = None) -> Source:
    """The network in a published checkpoint for `task`, with the action statistics of `data` or the published ones."""
    action_dim = len(envs.make(task).action_names)
    file = _weights_file(path)
    tensors = _tensors(file)
    _check_config(file.with_name("config.json"))
    position = tensors.get("predictor.pos_embedding")
    history = position.shape[1] if position is not None and position.ndim == 3 else 3
    model = models.build("paper", action_dim, history=history)
    model.load_state_dict(rename(tensors, model, str(path)))
    model.set_action_scale(*_action_statistics(task, data, action_dim))
    return Source(
        model=model.eval(),
        task=task,
        look="paper",
        preset="paper",
        network=models.settings("paper", history=history),
        objective="lewm",
        data="published by LeWM",
        steps=0,
        seed=0,
        versions={},
    )


def their_names(model: WorldModel, generation: str) -> dict[str, str]:
    """LeWM's name of each of our tensors, with the encoder's as in this generation of transformers."""
    names = {}
    for ours in model.state_dict().keys() - set(OWN):
        theirs = ours
        for pattern, replacement in NAMES + GENERATIONS[generation]:
            theirs = re.sub(pattern, replacement, theirs)
        names[ours] = theirs
    return names


def rename(tensors: dict[str, Tensor], model: WorldModel, origin: str) -> dict[str, Tensor]:
    """A LeWM state dict under our names; what is missing, too much or of another shape is listed and refused."""
    newer = any(name.startswith("encoder.layers.") for name in tensors)
    names = their_names(model, "transformers 5" if newer else "transformers 4")
    ours = model.state_dict()
    problems = [f"{name} is missing" for name in sorted(set(names.values()) - tensors.keys())]
    problems += [f"{name} is not part of LeWM" for name in sorted(tensors.keys() - set(names.values()))]
    renamed = {name: ours[name] for name in OWN}
    for name, theirs in sorted(names.items()):
        if theirs not in tensors:
            continue
        # LeWM squeezes actions with a convolution of width 1, which is a linear map with one more axis.
        tensor = tensors[theirs].squeeze(-1) if theirs == "action_encoder.patch_embed.weight" else tensors[theirs]
        if tensor.shape != ours[name].shape:
            problems.append(f"{theirs} has shape {tuple(tensors[theirs].shape)}, not {tuple(ours[name].shape)}")
        renamed[name] = tensor
    if problems:
        raise BadInput(f"{origin} is not a LeWM checkpoint for this task: {'; '.join(problems)}")
    return renamed


def _weights_file(path: Path) -> Path:
    if path.is_file():
        return path
    found = sorted(file for pattern in ("*.safetensors", "*.pt", "*.pth", "*.ckpt") for file in path.glob(pattern))
    if len(found) != 1:
        raise BadInput(f"{path} holds {len(found)} files of weights (safetensors or torch): name one of them")
    return found[0]


def _tensors(file: Path) -> dict[str, Tensor]:
    """The tensors in a file, without the prefixes that training wrappers put before their names."""
    try:
        if file.suffix == ".safetensors":
            loaded: Any = safetensors.torch.load_file(file)
        else:
            loaded = torch.load(file, map_location="cpu", weights_only=True)
    except (OSError, SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise BadInput(f"{file} cannot be read as plain weights ({reason})") from error
    loaded = loaded.get("state_dict", loaded) if isinstance(loaded, dict) else loaded
    if not isinstance(loaded, dict) or not all(isinstance(tensor, Tensor) for tensor in loaded.values()):
        raise BadInput(f"{file} does not hold a state dict of tensors")
    return {re.sub(r"^(model\.|module\.|_orig_mod\.)+", "", str(name)): tensor for name, tensor in loaded.items()}


def _check_config(file: Path) -> None:
    """Refuse a network that differs where shapes do not show it."""
    if not file.is_file():
        return
    try:
        config = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{file} cannot be read: {error}") from error
    for part, expected in ARCHITECTURE.items():
        said = config.get(part) if isinstance(config, dict) else None
        for name, value in expected.items():
            if isinstance(said, dict) and said.get(name, value) != value:
                raise BadInput(f"{file} describes another network: {part}.{name} is {said[name]}, not {value}")


def _action_statistics(task: str, data: Path | None, action_dim: int) -> tuple[Tensor, Tensor]:
    if data is None and task not in ACTION_STATISTICS:
        raise BadInput(
            f"the published checkpoint of {task} does not hold the mean and spread of its actions: give --data, the "
            "dataset that it was trained on"
        )
    if data is None:
        mean, std = ACTION_STATISTICS[task]
        return torch.tensor(mean), torch.tensor(std)
    actions = torch.from_numpy(read_actions(data))
    if actions.shape[1] != action_dim:
        raise BadInput(f"the actions in {data} have {actions.shape[1]} numbers, but those of {task} have {action_dim}")
    return actions.mean(dim=0).float(), actions.std(dim=0).float()
