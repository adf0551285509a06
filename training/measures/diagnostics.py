"""How Gaussian, how spread and how predictable latents are: functions of arrays."""

import torch
from scipy.stats import chi2
from torch import Tensor

from training.objectives import lewm
from training.objectives.base import directions
from training.objectives.targets import quantiles

CHUNK = 2**22  # projected numbers at a time: keeps 20,000 latents x 6,144 directions within 100 MB


@torch.no_grad()
def normality(
    latents: Tensor, slices: int = 512, seed: int = 0, by_direction: dict[str, Tensor] | None = None
) -> dict[str, float]:
    """Distance of latents `(M, D)` from a standard normal, averaged over random directions, and the radial tail.

    QQ RMSE against the quantiles at (n - 0.5)/M, the Kolmogorov-Smirnov distance, the Epps-Pulley statistic (which
    grows with M on anything but a normal), and P(|z|^2 > q90 of chi-squared with D degrees), 0.1 for a normal.
    `by_direction` is given each direction's own QQ RMSE and kurtosis.
    """
    count, size = latents.shape
    units = directions(slices, size, torch.Generator().manual_seed(seed), latents)
    levels = (torch.arange(count, device=latents.device) + 0.5)[:, None] / count
    normal = quantiles(count).to(latents)[:, None]
    totals = torch.zeros(3, dtype=torch.float64)
    single: list[Tensor] = []
    for part in units.split(max(1, CHUNK // count)):
        x = (latents @ part.T).sort(dim=0).values
        rmse = (x - normal).square().mean(0).sqrt()
        gap = (torch.special.ndtr(x) - levels).abs().amax(0) + 0.5 / count
        if by_direction is not None:
            centred = x - x.mean(0)
            kurtosis = centred.pow(4).mean(0) / centred.square().mean(0).square()
            single.append(torch.stack([rmse, kurtosis]).cpu())
        totals += torch.stack([rmse.sum(), gap.sum(), lewm.statistic(x).sum()]).double().cpu()
    rmse_mean, ks, ep = (totals / slices).tolist()
    if by_direction is not None:
        by_direction["qq_rmse"], by_direction["kurtosis"] = torch.cat(single, 1)
    tail = (latents.square().sum(1) > chi2.ppf(0.9, size)).double().mean()
    return {"qq_rmse": rmse_mean, "ks": ks, "ep": ep, "tail_rate": float(tail)}


@torch.no_grad()
def spread(latents: Tensor) -> dict[str, float]:
    """Standard deviation per dimension and effective rank (exponential entropy of the covariance's spectrum)."""
    std = latents.std(0)
    spectrum = torch.linalg.eigvalsh(torch.cov(latents.double().T.cpu())).clamp_min(0)
    share = spectrum / spectrum.sum().clamp_min(1e-30)
    rank = torch.exp(-(share * share.clamp_min(1e-30).log()).sum())
    return {
        "std_min": float(std.min()),
        "std_mean": float(std.mean()),
        "std_max": float(std.max()),
        "effective_rank": float(rank),
    }


@torch.no_grad()
def predictability(latents: Tensor, one_step: Tensor, open_loop: Tensor) -> dict[str, float]:
    """Errors of predictions of a window's latents `(B, T, D)`, relative to their variance and to copying.

    `one_step` `(B, T-1, D)` are teacher-forced predictions of frames 1 …, `open_loop` `(B, T-1, D)` roll on from the
    first frame alone. A small error means little where a block hardly changes the latent or copying does as well.
    """
    variance = latents.flatten(0, 1).var(0).mean().clamp_min(1e-12)
    steps = open_loop.shape[1]
    change = (latents[:, 1:] - latents[:, :-1]).square().mean()
    copied = (latents[:, -1] - latents[:, 0]).square().mean()
    first = (one_step - latents[:, 1:]).square().mean()
    last = (open_loop[:, -1] - latents[:, -1]).square().mean()
    return {
        "error_1": float(first / variance),
        f"error_{steps}": float(last / variance),
        "error_1_to_copy": float(first / change.clamp_min(1e-12)),
        f"error_{steps}_to_copy": float(last / copied.clamp_min(1e-12)),
        "change_1": float(change / variance),
        f"change_{steps}": float(copied / variance),
    }


def alarm(measured: dict[str, float]) -> str | None:
    """What to do if the latents are collapsing, else None."""
    if measured["std_mean"] > 0.05 and measured["effective_rank"] > 2:
        return None
    return (
        f"the latents are collapsing (mean deviation {measured['std_mean']:.3f}, effective rank "
        f"{measured['effective_rank']:.1f}): raise the regulariser's --weight, lower --lr, or look at the pictures"
    )
