"""The QQ objective: order statistics against normal quantiles, and the queue of earlier batches."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from tests.training.objective_losses import generator, loss_of
from training import objectives
from training.objectives import qqworld
from training.objectives.base import directions


def test_qq_is_the_squared_distance_of_order_statistics_to_normal_quantiles():
    x = np.random.default_rng(0).normal(2, 3, size=37)
    expected = ((np.sort(x) - norm.ppf((np.arange(1, 38) - 0.5) / 37)) ** 2).sum()
    assert float(qqworld.statistic(torch.tensor(x))) == pytest.approx(expected)
    assert float(qqworld.statistic(torch.tensor(x), reduction="mean")) == pytest.approx(expected / 37)


def test_qq_treats_every_slice_alone():
    x = torch.randn(20, 3, generator=generator())
    torch.testing.assert_close(qqworld.statistic(x), torch.stack([qqworld.statistic(x[:, i]) for i in range(3)]))


def test_the_objective_averages_qq_over_directions_and_time_steps():
    latents = torch.randn(2, 16, 8, generator=generator())
    objective = objectives.make("qqworld", latent=8, directions=5, reduction="sum")
    units = directions(5, 8, generator(3), latents)
    slices = [qqworld.statistic(step @ unit) for step in latents for unit in units]
    value = objective.terms(latents, latents, generator(3))["qq"]
    torch.testing.assert_close(value, torch.stack(slices).mean())


def test_qq_of_one_sample_is_its_square():
    assert float(qqworld.statistic(torch.tensor([1.5]))) == 2.25


def test_an_empty_queue_is_exactly_the_base_loss():
    latents = torch.randn(4, 16, 32, generator=generator())
    base, queued = objectives.make("qqworld", latent=32), objectives.make("qqworld", latent=32, queue=3)
    assert torch.equal(loss_of(base, latents).total, loss_of(queued, latents).total)


def test_the_queue_ranks_current_samples_among_all_m_and_moves_only_them():
    current = torch.randn(8, requires_grad=True, generator=generator(1))
    history = torch.randn(24, requires_grad=True, generator=generator(2))
    together = qqworld.targets(torch.cat([current, history]))
    torch.testing.assert_close(qqworld.targets(current, history), together[:8])

    qqworld.statistic(current, history).backward()
    torch.testing.assert_close(current.grad, 2 * (current.detach() - together[:8]))
    assert history.grad is None


def test_the_queue_holds_the_last_k_batches_projected_on_the_current_directions():
    objective = objectives.make("qqworld", latent=8, queue=2, directions=4)
    batches = [torch.randn(4, 16, 8, generator=generator(i)) for i in range(4)]
    for batch in batches[:3]:
        loss_of(objective, batch)
    units = directions(4, 8, generator(9), batches[0])
    pool = torch.cat([batches[3], batches[2], batches[1]], dim=1)
    expected = (
        (batches[3] @ units.T - qqworld.targets((pool @ units.T).movedim(1, 0))[:16].movedim(0, 1)).square().mean()
    )
    value = loss_of(objective, batches[3], seed=9).terms["qq"]
    torch.testing.assert_close(value, expected)


def test_evaluation_leaves_the_queue_alone():
    objective = objectives.make("qqworld", latent=8, queue=2).eval()
    loss_of(objective, torch.randn(4, 16, 8))
    assert objective.pushed == 0


def test_the_queue_survives_a_restart():
    objective = objectives.make("qqworld", latent=8, queue=2)
    for seed in range(3):
        loss_of(objective, torch.randn(4, 16, 8, generator=generator(seed)))
    restarted = objectives.make("qqworld", latent=8, queue=2)
    restarted.load_state_dict(objective.state_dict())
    latents = torch.randn(4, 16, 8, generator=generator(5))
    assert torch.equal(loss_of(objective, latents).total, loss_of(restarted, latents).total)
