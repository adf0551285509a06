"""Measures a world model on held-out episodes: prediction, normality, spread and probes, always on the same frames."""

import numpy as np
import torch
from torch import Tensor

from envs.dataset.reader import Dataset
from models import WorldModel
from training.data.windows import Windows, rows_of
from training.measures import diagnostics, probes

HORIZON = 5
CHUNK = 256


class HeldOut:
    """A fixed sample of held-out windows and frames, and of training frames to fit probes on."""

    def __init__(
        self, dataset: Dataset, train: np.ndarray, held: np.ndarray, fill: np.ndarray, block: int, frames: int = 4096
    ):
        stride = block // dataset.frame_skip
        horizon = max(1, min(HORIZON, (int(dataset.length[held].max()) - 1) // stride))
        self.windows = Windows.of(dataset, held, horizon + 1, block, fill)
        self.index = self.windows.spread(min(256, frames))
        rng = np.random.default_rng(0)
        self.dataset = dataset
        self.seen, self.unseen = (
            np.sort(rng.choice(rows, min(frames, len(rows)), replace=False))
            for rows in (rows_of(dataset, train), rows_of(dataset, held))
        )
        self.factors, self.names = probes.factors(dataset.state, dataset.state_names)

    @torch.no_grad()
    def measure(self, model: WorldModel, slices: int = 512) -> dict[str, float]:
        """Every diagnostic by name; the model is left in the mode it was in."""
        training = model.training
        model.eval()
        frames, actions = self.windows.pixels(self.index), self.windows.actions(self.index)
        latents = encode(model, frames)
        one_step, open_loop = predictions(model, latents, torch.from_numpy(actions).to(latents.device))
        unseen = encode(model, self.dataset.pixels[self.unseen])
        measured = diagnostics.predictability(latents, one_step, open_loop)
        measured |= diagnostics.normality(unseen, slices) | diagnostics.spread(unseen)
        if self.names:
            seen = encode(model, self.dataset.pixels[self.seen])
            known, truth = (torch.from_numpy(self.factors[rows]).float() for rows in (self.seen, self.unseen))
            for probe, scores in probes.score(seen.cpu(), known, unseen.cpu(), truth).items():
                measured |= {
                    f"r2_{probe}/{name}": float(r2)
                    for name, r2 in zip(self.names, scores, strict=True)
                    if np.isfinite(r2)
                }
        model.train(training)
        return measured


def encode(model: WorldModel, pixels: np.ndarray) -> Tensor:
    """Latents `(N, …, D)` of pictures `(N, …, H, W, 3)`, a few at a time."""
    parts = [
        model.encode(torch.from_numpy(np.ascontiguousarray(pixels[i : i + CHUNK])).to(model.pixel_mean.device))
        for i in range(0, len(pixels), CHUNK)
    ]
    return torch.cat(parts)


def predictions(model: WorldModel, latents: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    """Teacher-forced and open-loop predictions `(B, T-1, D)` of latents `(B, T, D)` under blocks `(B, T, k*A)`."""
    one_step = []
    for last in range(latents.shape[1] - 1):
        context = slice(max(0, last - model.history + 1), last + 1)
        one_step.append(model.predict(latents[:, context], actions[:, context])[:, -1])
    open_loop = model.rollout(latents[:, :1], actions[:, :0], actions[:, :-1])
    return torch.stack(one_step, 1), open_loop
