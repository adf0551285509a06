"""Strength: weights with which different regularisers pull equally strongly near a standard normal."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from envs.errors import run
from training import train
from training.config import Config, Regulariser
from training.objectives import OBJECTIVES, kind_of, make
from training.phases.pipeline import defaults

SAMPLES, LATENT, STRENGTH, STEP = 8000, 4, 7.0, 0.02
SETTINGS = {
    "qqworld": {"directions": 8},
    "lewm": {"directions": 8},
    "visreg": {"directions": 8},
    "sub-jepa": {"directions": 8, "subspaces": 2},
    "sd-jepa": {"directions": 8, "progression": 2, "latent": LATENT + 2},
}
WITHOUT = [name for name in OBJECTIVES if name not in SETTINGS]


def standard_normal() -> Tensor:
    """Latents `(LATENT, SAMPLES, LATENT)` with mean 0 and covariance 1 in every frame."""
    drawn = torch.randn(LATENT, SAMPLES, LATENT, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    centred = drawn - drawn.mean(1, keepdim=True)
    whiten = torch.linalg.cholesky(torch.linalg.inv(centred.mT @ centred / SAMPLES))
    return centred @ whiten


def scaled(amount: float) -> Tensor:
    return standard_normal() * (1 + amount)


def shifted(amount: float) -> Tensor:
    """Each frame is shifted along an axis of its own: in every direction the mean square over frames is the same."""
    return standard_normal() + amount * math.sqrt(LATENT) * torch.eye(LATENT, dtype=torch.float64)[:, None]


def curvature(name: str, moved: Callable[[float], Tensor], weight: float) -> float:
    """Second derivative of what an objective's regulariser adds to the loss, with respect to a movement's amount."""
    objective = make(name, **{"latent": LATENT, "weight": weight} | SETTINGS[name]).double()

    def loss(amount: float) -> float:
        latents = moved(amount)
        if name == "sd-jepa":  # what comes before the content follows progress
            latents = torch.cat([torch.ones_like(latents[..., :2]), latents], dim=-1)
        terms = objective.terms(latents, torch.empty(0), torch.Generator().manual_seed(1))
        return sum(objective.weights[part] * float(value) for part, value in terms.items() if part != "triplet")

    return (loss(STEP) - 2 * loss(0) + loss(-STEP)) / STEP**2


@pytest.mark.parametrize("moved", [scaled, shifted])
@pytest.mark.parametrize("name", SETTINGS)
def test_at_equal_strength_scale_and_mean_are_pulled_as_by_mean_qq_with_that_weight(name, moved):
    weight = kind_of(name).weight_of(STRENGTH, SAMPLES)
    assert curvature(name, moved, weight) == pytest.approx(curvature("qqworld", moved, STRENGTH), rel=0.03)


def test_a_sum_over_the_batch_needs_a_weight_that_is_smaller_by_the_batch():
    made = {
        reduction: Config("dot", batch=64, regulariser=Regulariser(strength=7, reduction=reduction)).make_objective()
        for reduction in ("mean", "sum")
    }
    assert made["mean"].weights == {"qq": 7}
    assert made["sum"].weights == {"qq": pytest.approx(7 / 64)}


def test_a_weight_of_its_own_takes_the_place_of_the_strength():
    chosen = Regulariser(strength=7, weight=0.5)
    assert Config("dot", objective="lewm", regulariser=chosen).make_objective().weights == {"ep": 0.5}


@pytest.mark.parametrize("name", WITHOUT)
def test_objectives_without_strength_refuse_it_in_one_sentence(name, tmp_path, capsys):
    words = f"--env dot --objective {name} --strength 3 --data {tmp_path / 'none.h5'} --out {tmp_path / 'run'}"
    with pytest.raises(SystemExit) as stopped:
        run(lambda: train.main(words.split()))
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said == f"error: the objective {name} has no strength to compare with others: give its own weights\n"


@pytest.mark.parametrize("name", WITHOUT)
def test_the_strength_of_a_recipe_does_not_stop_them(name):
    config = defaults("encoder", Config("pusht", objective=name))
    assert config.regulariser.strength is None
    assert config.make_objective().weights == make(name, task="pusht").weights


def test_a_recipe_has_one_strength_for_all_that_have_one():
    for name in SETTINGS:
        config = defaults("encoder", Config("pusht", objective=name))
        force = next(iter(config.make_objective().weights.values())) / kind_of(name).weight_of(1, config.batch)
        assert force == pytest.approx(config.regulariser.strength)
