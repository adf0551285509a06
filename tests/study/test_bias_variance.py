"""The error of finite pools' targets: what the law says, what is exact, and what drawn pools show."""

import numpy as np
import pytest
import torch

from study.figures.bias_variance import BATCHES, QUEUES, exact, law, main, measured, quantiles
from training.objectives import qqworld

X = np.linspace(-3, 3, 13)


def test_the_law_overstates_the_error_of_a_small_batch_and_omits_its_bias():
    error, stated = exact(np.array([2.5, 3.0]), batch=32), law(np.array([2.5, 3.0]), batch=32)

    assert error.mse[0] == pytest.approx(0.226, abs=5e-4)
    assert error.bias == pytest.approx([-0.43, -0.87], abs=5e-3)
    assert stated[0] == pytest.approx(0.628, abs=5e-4)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("queue", QUEUES)
def test_drawn_pools_have_the_exact_bias_and_variance(batch, queue):
    error, drawn = exact(X, batch, queue), measured(X, batch, queue, draws=4000)

    assert drawn.bias == pytest.approx(error.bias, abs=0.02)
    assert drawn.variance == pytest.approx(error.variance, abs=0.012)
    assert drawn.mse == pytest.approx(error.mse, abs=0.03)


def test_stale_batches_are_exact_too():
    error, drawn = exact(X, 32, 3, drift=0.2), measured(X, 32, 3, drift=0.2, draws=4000)

    assert drawn.bias == pytest.approx(error.bias, abs=0.02)
    assert error.bias[6] == pytest.approx(np.mean([-0.2 * age for age in range(4)]), abs=0.03)


def test_the_law_holds_in_the_middle_of_a_large_pool():
    middle = np.linspace(-1, 1, 5)

    assert law(middle, 128, 3) == pytest.approx(exact(middle, 128, 3).mse, rel=0.02)
    assert law(middle, 128, 3, drift=0.02) == pytest.approx(exact(middle, 128, 3, drift=0.02).mse, rel=0.05)


def test_a_queue_is_a_larger_pool_when_nothing_is_stale():
    assert exact(X, 32, 3).mse == pytest.approx(exact(X, 128, 0).mse)


def test_these_are_the_targets_that_training_uses():
    rng = np.random.default_rng(0)
    batch, history = rng.normal(size=32), rng.normal(size=96)
    ranks = [(np.concatenate([batch, history]) < value).sum() for value in batch]

    used = qqworld.targets(torch.from_numpy(batch)[:, None], torch.from_numpy(history)[:, None])[:, 0]

    assert used.numpy() == pytest.approx(quantiles(128)[ranks], abs=1e-6)


def test_the_command_prints_a_row_for_every_pool_and_point(capsys):
    assert main([]) == 0

    said = capsys.readouterr().out
    assert "| 32 | 1 | 2.5 | -0.434 | 0.038 | 0.226 | 0.628 |" in said
    assert said.count("\n") == 2 + 5 * len(BATCHES) * len(QUEUES)
