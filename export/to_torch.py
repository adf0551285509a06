"""The way back: a world-model file as a run folder that training can go on from."""

import json
import tempfile
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import nn

from agent.world_models import file as model_file
from agent.world_models.file.metadata import Metadata
from envs.errors import BadInput
from export.recover import proposal_sizes, recover
from models.run_folder import CHECKPOINT, CONFIG, MODEL, PROPOSALS


def write_run(path: Path, out: Path) -> Metadata:
    """Write the network in the world-model file at `path` as the run folder `out`, whole or not at all.

    Returns what the file says about itself.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise BadInput(f"{out} exists and is not an empty folder: give another --out")
    file = model_file.read(path)
    try:
        source = recover(file)
    except BadInput as error:
        raise BadInput(f"the weights in {path} cannot be given back: {error}") from error
    about = file.metadata
    known = ("objective", "preset", "network", "seed", "steps", "action_dim", "action_mean", "action_std", "versions")
    config = {"env": about.task} | {name: getattr(about, name) for name in known}
    config["data"] = {"fingerprint": about.data, "task": about.task, "look": about.look}
    config["from_file"] = {"sha256": file.sha256, "revision": about.revision}
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=".to-torch-") as temporary:
            draft = Path(temporary) / "run"
            _write_folder(draft, config, source.model, MODEL)
            if source.proposals is not None:
                learned_on = {"step": about.steps, "encoder": source.model.encoder_fingerprint()}
                config = {name: config[name] for name in ("steps", "versions", "data", "from_file")}
                config |= {"network": proposal_sizes(file), "world_model": learned_on}
                _write_folder(draft / PROPOSALS, config, source.proposals)
            draft.replace(out)
    except OSError as error:
        raise BadInput(f"cannot write {out}: {error.strerror}") from error
    return about


def _write_folder(folder: Path, config: dict[str, Any], network: nn.Module, prefix: str = "") -> None:
    folder.mkdir()
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n")
    tensors = {f"{prefix}{name}": tensor.contiguous() for name, tensor in network.state_dict().items()}
    safetensors.torch.save_file(tensors, folder / CHECKPOINT, {"step": str(config["steps"])})
