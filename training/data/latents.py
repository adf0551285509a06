"""Every frame of a dataset as a trained, frozen encoder sees it: computed once and kept beside the run."""

import sys
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor
from tqdm import tqdm

from envs.dataset.reader import Dataset
from models import WorldModel
from training.measures.held_out import CHUNK, encode
from training.run_folder import RunFolder

CACHE = "latents.safetensors"


def latents_of(model: WorldModel, data: Dataset, run: Path, bar: bool = True) -> Tensor:
    """The latents `(R, D)` of all rows of `data`, from the run folder if they were computed before."""
    key = {"encoder": model.encoder_fingerprint(), "data": data.fingerprint}
    path = run / CACHE
    if path.exists():
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                if file.metadata() == key:
                    return file.get_tensor("latents")
        except (SafetensorError, OSError):
            pass  # damaged: computed again
    latents = torch.empty(len(data.pixels), model.latent)
    interval = 0.5 if sys.stderr.isatty() else 30.0
    with torch.no_grad(), tqdm(total=len(latents), unit="frame", mininterval=interval, disable=not bar) as progress:
        for first in range(0, len(latents), CHUNK):
            part = slice(first, first + CHUNK)
            latents[part] = encode(model, np.array(data.pixels[part])).cpu()
            progress.update(len(latents[part]))
    RunFolder(run).replace(CACHE, lambda file: safetensors.torch.save_file({"latents": latents}, file, key))
    return latents
