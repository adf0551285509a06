"""What all objectives share: terms and weights, and what they do with ties, single samples, constants and NaN."""

import math

import pytest
import torch

from envs.errors import BadInput
from tests.training.objective_losses import generator, loss_of
from training import objectives
from training.objectives.base import directions

NAMES = list(objectives.OBJECTIVES)


@pytest.mark.parametrize("name", NAMES)
def test_an_objective_is_prediction_error_plus_its_weighted_terms(name):
    latents = torch.randn(4, 16, 32, generator=generator(), requires_grad=True)
    loss = loss_of(objectives.make(name, latent=32), latents)
    expected = sum(loss.weights[term] * value for term, value in loss.terms.items())
    torch.testing.assert_close(loss.total, expected)
    moved = (latents[1:] - latents[:-1])[: objectives.OBJECTIVES[name].frames - 1]
    torch.testing.assert_close(loss.terms["prediction"], moved.square().mean())
    loss.total.backward()
    assert latents.grad.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", ["one window", "constant latents", "ties"])
def test_degenerate_batches_give_a_finite_loss_and_gradient(name, case):
    latents = {
        "one window": torch.randn(4, 1, 32, generator=generator()),
        "constant latents": torch.full((4, 16, 32), 0.5),
        "ties": torch.randn(4, 8, 32, generator=generator()).repeat(1, 2, 1),
    }[case].requires_grad_()
    loss = loss_of(objectives.make(name, latent=32), latents)
    loss.total.backward()
    assert loss.total.isfinite()
    assert latents.grad.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_a_nan_latent_makes_the_loss_nan_instead_of_vanishing_in_a_sort(name):
    latents = torch.randn(4, 16, 32, generator=generator())
    latents[1, 3, 5] = math.nan
    assert loss_of(objectives.make(name, latent=32), latents).total.isnan()


@pytest.mark.parametrize("name", ["qqworld", "lewm", "visreg", "sub-jepa", "sd-jepa"])
def test_regularisers_compute_in_float32_under_bfloat16(name):
    latents = torch.randn(4, 64, 32, generator=generator())
    with torch.autocast("cpu", torch.bfloat16):
        mixed = loss_of(objectives.make(name, latent=32), latents)
    full = loss_of(objectives.make(name, latent=32), latents)
    for term, value in full.terms.items():
        assert mixed.terms[term].dtype == torch.float32
        torch.testing.assert_close(mixed.terms[term], value)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_generator_gives_the_same_loss(name):
    latents = torch.randn(4, 16, 32, generator=generator())
    objective = objectives.make(name, latent=32)
    assert torch.equal(loss_of(objective, latents, seed=7).total, loss_of(objective, latents, seed=7).total)


def test_directions_are_unit_vectors():
    units = directions(50, 192, generator(), torch.empty(0))
    torch.testing.assert_close(units.norm(dim=1), torch.ones(50))


@pytest.mark.parametrize(
    ("name", "task", "term", "weight"),
    [
        ("qqworld", "pusht", "qq", 3.5),
        ("lewm", "pusht", "ep", 0.09),
        ("vicreg", "cube", "std", 18),
        ("pldm", "cube", "temporal_std", 0.7),
        ("visreg", "reacher", "shape", 4.5),
        ("sub-jepa", "reacher", "ep", 0.09),
        ("sd-jepa", "pusht", "triplet", 0.1),
        ("smwm", "two-room", "inverse", 0.1),
        ("smwm", "reacher", "inverse", 5),
        ("smwm", "pusht", "inverse", 30),
        ("smwm", "cube", "inverse", 1),
    ],
)
def test_weights_are_the_published_ones_for_the_task(name, task, term, weight):
    assert objectives.make(name, task=task).weights[term] == weight


def test_settings_published_for_a_task_apply_and_can_be_overruled():
    assert objectives.make("sub-jepa", task="pusht").bases.shape == (16, 12, 192)
    assert objectives.make("sub-jepa", task="cube").bases.shape == (32, 6, 192)
    assert objectives.make("sd-jepa", task="pusht").progression == 8
    assert objectives.make("sd-jepa", task="pusht", progression=2).progression == 2


def test_only_smwm_trains_on_windows_of_two_frames():
    assert {name for name, kind in objectives.OBJECTIVES.items() if kind.frames != 4} == {"smwm"}
    assert objectives.OBJECTIVES["smwm"].frames == 2


def test_an_unknown_objective_or_setting_is_refused_with_the_known_ones():
    with pytest.raises(BadInput, match="choose one of qqworld, lewm"):
        objectives.make("sigreg")
    with pytest.raises(BadInput, match="lewm has no setting 'queue'"):
        objectives.make("lewm", queue=2)
