"""How proposals are learned and measured: the likelihood of the action blocks that were taken."""

import math

import torch
from torch import Tensor

from models import Proposals
from models.proposal_network import Mixture
from training.data.hindsight import Hindsight, Samples

DISTANCES = (1, 2, 3, 5, 10, 20)
"""Blocks between a frame and its goal at which proposals are measured."""


def make_network(latents: Tensor, mean: Tensor, std: Tensor, **settings: float) -> Proposals:
    """A fresh network for latents like these `(N, D)` and action blocks of this mean and spread `(k*A,)`."""
    network = Proposals(latents.shape[1], len(mean), **settings)  # type: ignore[arg-type]
    network.latent_mean.copy_(latents.mean(0))
    network.latent_std.copy_(latents.std(0).clamp(min=1e-4))
    network.action_mean.copy_(mean)
    network.action_std.copy_(std)
    return network


def loss(network: Proposals, samples: Samples) -> Tensor:
    """Mean negative log-likelihood, in nats for each number of a block."""
    return nll(network(*samples[:3]), z_scored(network, samples)).mean() / network.action_size


def nll(mixture: Mixture, blocks: Tensor) -> Tensor:
    """Negative log-likelihood `(B,)` of z-scored blocks `(B, k*A)`."""
    off = (blocks[:, None] - mixture.means) / mixture.spreads
    each = -0.5 * (off**2 + math.log(2 * math.pi)) - mixture.spreads.log()
    return -torch.logsumexp(mixture.weights.log_softmax(1) + each.sum(2), dim=1)


@torch.no_grad()
def measure(network: Proposals, hindsight: Hindsight) -> dict[str, float]:
    """By blocks to the goal: the likelihood, and the squared error of the likeliest mean (1: no better than a mean)."""
    training = network.training
    network.eval()
    device = network.latent_mean.device
    measured = {}
    for blocks in DISTANCES:
        samples = hindsight.apart(blocks)
        if samples is None:
            continue
        samples = Samples(*(part.to(device) for part in samples))
        mixture, wanted = network(*samples[:3]), z_scored(network, samples)
        means = mixture.means[torch.arange(len(wanted)), mixture.weights.argmax(1)]
        measured[f"error_{blocks}"] = float((means - wanted).square().mean())
        measured[f"nll_{blocks}"] = float(nll(mixture, wanted).mean() / network.action_size)
    network.train(training)
    return measured


def z_scored(network: Proposals, samples: Samples) -> Tensor:
    """Blocks `(B, k*A)` as the network sees them."""
    return (samples.actions - network.action_mean) / network.action_std
