"""Every frame of a dataset as a trained, frozen encoder sees it: computed once and kept beside the run."""

import sys
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor
from tqdm import tqdm

import models
from envs.dataset.reader import Dataset
from envs.errors import BadInput
from training.measures.held_out import CHUNK, encode
from training.run_folder import RunFolder

CACHE, PREFIX = "latents.safetensors", "model."


def read_model(run: Path) -> tuple[str, int, models.WorldModel]:
    """Task, step and world model of a run folder's last checkpoint, ready to be used and not to be trained."""
    folder = RunFolder(run)
    if not run.is_dir():
        raise BadInput(f"there is no run folder {run}: train a world model with `python -m training.train` first")
    config, loaded = folder.config(), folder.load()
    if loaded is None:
        raise BadInput(f"{run} has no checkpoint yet: train the world model first")
    step, tensors = loaded
    try:
        model = models.build(config["preset"], config["action_dim"], **config["network"])
        model.load_state_dict({n.removeprefix(PREFIX): t for n, t in tensors.items() if n.startswith(PREFIX)})
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"{run} does not hold a run of this trainer: give another --run") from error
    return config["env"], step, model.eval().requires_grad_(False)


def latents_of(model: models.WorldModel, data: Dataset, run: Path, bar: bool = True) -> Tensor:
    """The latents `(R, D)` of all rows of `data`, from the run folder if they were computed before."""
    key = {"encoder": model.encoder_fingerprint(), "data": data.fingerprint}
    path = run / CACHE
    if path.exists():
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                if file.metadata() == key:
                    return file.get_tensor("latents")
        except (SafetensorError, OSError):
            pass  # damaged: computed anew
    latents = torch.empty(len(data.pixels), model.latent)
    interval = 0.5 if sys.stderr.isatty() else 30.0
    with torch.no_grad(), tqdm(total=len(latents), unit="frame", mininterval=interval, disable=not bar) as progress:
        for first in range(0, len(latents), CHUNK):
            part = slice(first, first + CHUNK)
            latents[part] = encode(model, np.array(data.pixels[part])).cpu()
            progress.update(len(latents[part]))
    RunFolder(run).replace(CACHE, lambda file: safetensors.torch.save_file({"latents": latents}, file, key))
    return latents
