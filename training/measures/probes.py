"""What a latent knows about the state: linear and small-MLP probes, scored per state factor on held-out episodes."""

import re
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

PERIODIC = re.compile(r"(angle|yaw|theta|shoulder|wrist)$")
INVISIBLE = re.compile(r"velocity|_[vw][xyz]$")
HIDDEN, STEPS, BATCH = 128, 300, 512


def factors(state: np.ndarray | None, names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """State columns `(R, F)` a picture can show, with names: angles as cosine and sine, velocities left out."""
    columns: list[np.ndarray] = []
    labels: list[str] = []
    for values, name in zip([] if state is None else state.T, names, strict=True):
        if PERIODIC.search(name):
            columns += [np.cos(values), np.sin(values)]
            labels += [f"cos {name}", f"sin {name}"]
        elif not INVISIBLE.search(name):
            columns.append(values)
            labels.append(name)
    return np.stack(columns, 1) if columns else np.empty((0, 0)), labels


def score(seen: Tensor, known: Tensor, unseen: Tensor, truth: Tensor) -> dict[str, np.ndarray]:
    """R^2 per factor `(F,)` on `unseen` latents `(N, D)` of probes fitted on `seen` `(M, D)`; NaN if it is constant."""
    centre, scale = seen.mean(0), seen.std(0) + 1e-6
    seen, unseen = (seen - centre) / scale, (unseen - centre) / scale
    mean, deviation = known.mean(0), known.std(0)
    known = (known - mean) / deviation.clamp_min(1e-9)
    truth = (truth - mean) / deviation.clamp_min(1e-9)
    guesses = {"linear": linear(seen, known, unseen), "mlp": mlp(seen, known, unseen)}
    scores = {}
    for name, guess in guesses.items():
        r2 = 1 - (guess - truth).square().mean(0) / truth.var(0, correction=0)
        scores[name] = torch.where((deviation > 1e-9) & r2.isfinite(), r2, torch.nan).double().numpy()
    return scores


def errors(seen: Tensor, known: Tensor, unseen: Tensor, truth: Tensor, seed: int) -> dict[str, np.ndarray]:
    """MSE of z-scored factors and Pearson r `(F, 2)` on `unseen` latents `(N, D)` of probes fitted on `seen`."""
    centre, scale = seen.mean(0), seen.std(0) + 1e-6
    seen, unseen = (seen - centre) / scale, (unseen - centre) / scale
    mean, deviation = known.mean(0), known.std(0).clamp_min(1e-9)
    known, truth = (known - mean) / deviation, (truth - mean) / deviation
    found = {}
    for name, guess in {"linear": linear(seen, known, unseen), "mlp": mlp(seen, known, unseen, seed)}.items():
        both = torch.stack([guess - guess.mean(0), truth - truth.mean(0)])
        r = both.prod(0).mean(0) / both.square().mean(1).prod(0).sqrt().clamp_min(1e-12)
        found[name] = torch.stack([(guess - truth).square().mean(0), r], 1).double().numpy()
    return found


def linear(seen: Tensor, known: Tensor, unseen: Tensor) -> Tensor:
    """Ridge regression: predictions `(N, F)` for `unseen` `(N, D)`."""
    gram = seen.T @ seen + 1e-3 * len(seen) * torch.eye(seen.shape[1])
    return unseen @ torch.linalg.solve(gram, seen.T @ known)


def mlp(seen: Tensor, known: Tensor, unseen: Tensor, seed: int = 0) -> Tensor:
    """A net with one hidden layer, always trained the same way: predictions `(N, F)` for `unseen` `(N, D)`."""
    generator = torch.Generator().manual_seed(seed)
    net = nn.Sequential(nn.Linear(seen.shape[1], HIDDEN), nn.GELU(), nn.Linear(HIDDEN, known.shape[1]))
    for parameter in net.parameters():
        bound = parameter.shape[-1] ** -0.5
        parameter.data.uniform_(-bound, bound, generator=generator)
    optimiser = torch.optim.AdamW(net.parameters(), weight_decay=1e-2, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=STEPS)
    with torch.enable_grad():
        for _ in range(STEPS):
            batch = torch.randint(len(seen), (BATCH,), generator=generator)
            optimiser.zero_grad()
            (net(seen[batch]) - known[batch]).square().mean().backward()
            optimiser.step()
            schedule.step()
    return net(unseen).detach()
