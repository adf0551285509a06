"""The objectives: what each computes, and what it does with ties, single samples, constants and NaN."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

from envs.errors import BadInput
from training import objectives
from training.objectives import lewm, qqworld
from training.objectives.base import directions
from training.objectives.vicreg import covariance

torch.set_num_threads(1)  # the test workers already share the cores

NAMES = list(objectives.OBJECTIVES)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def loss_of(objective: objectives.Objective, latents: torch.Tensor, seed: int = 0) -> objectives.Loss:
    latents = latents[: objective.frames]
    actions = torch.zeros(*latents.shape[:2], objective.action_size)
    return objective(latents, latents[1:] - latents[:-1], actions, generator(seed))


# ---- what all of them share ------------------------------------------------------------------------------------------


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


# ---- QQ --------------------------------------------------------------------------------------------------------------


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


# ---- Epps-Pulley -----------------------------------------------------------------------------------------------------


def test_epps_pulley_is_lewms_quadrature():
    x = np.random.default_rng(0).normal(size=(128, 3))
    t = np.linspace(0, 3, 17)
    weights = np.where((t == 0) | (t == 3), 3 / 16, 2 * 3 / 16) * np.exp(-(t**2) / 2)
    angles = x[..., None] * t
    gap = (np.cos(angles).mean(0) - np.exp(-(t**2) / 2)) ** 2 + np.sin(angles).mean(0) ** 2
    expected = 128 * (gap * weights).sum(-1)
    np.testing.assert_allclose(lewm.statistic(torch.tensor(x)), expected, rtol=1e-6)


@pytest.mark.parametrize(("mean", "scale"), [(0, 1), (0.5, 1), (0, 0.3), (0, 2)])
def test_the_quadrature_agrees_with_the_closed_form(mean, scale):
    x = mean + scale * torch.randn(512, 8, generator=generator(), dtype=torch.float64)
    torch.testing.assert_close(lewm.statistic(x), lewm.closed_form(x), rtol=0.03, atol=0.01)


def test_the_closed_form_is_the_integral_of_the_characteristic_functions():
    x = np.random.default_rng(0).normal(0.3, 1.4, size=40)
    t = np.linspace(-12, 12, 40_001)
    gap = np.abs(np.exp(1j * t[:, None] * x).mean(1) - np.exp(-(t**2) / 2)) ** 2
    integral = 40 * np.trapezoid(gap * np.exp(-(t**2) / 2), t)
    assert float(lewm.closed_form(torch.tensor(x))) == pytest.approx(integral, rel=1e-6)


# ---- the others ------------------------------------------------------------------------------------------------------


def test_the_covariance_term_is_the_mean_squared_off_diagonal_of_the_unbiased_covariance():
    latents = torch.randn(1, 30, 5, generator=generator())
    matrix = np.cov(latents[0].numpy().T)
    off = matrix[~np.eye(5, dtype=bool)]
    assert float(covariance(latents)) == pytest.approx((off**2).mean(), rel=1e-4)


def test_the_variance_hinge_asks_for_unit_spread_and_no_more():
    narrow, wide = (scale * torch.randn(4, 512, 16, generator=generator()) for scale in (0.2, 3.0))
    objective = objectives.make("vicreg", latent=16)
    assert float(loss_of(objective, narrow).terms["std"]) == pytest.approx(0.8, abs=0.01)
    assert float(loss_of(objective, wide).terms["std"]) == 0


def test_pldm_adds_smoothness_and_spread_over_time_to_vicreg():
    latents = torch.randn(4, 16, 8, generator=generator())
    plain, timed = (
        loss_of(objectives.make("vicreg", latent=8), latents),
        loss_of(objectives.make("pldm", latent=8), latents),
    )
    assert torch.equal(plain.terms["cov"], timed.terms["cov"])
    torch.testing.assert_close(timed.terms["temporal_align"], (latents[1:] - latents[:-1]).square().mean())
    frozen = loss_of(objectives.make("pldm", latent=8), latents[:1].expand(4, -1, -1))
    assert float(frozen.terms["temporal_align"]) == 0
    assert float(frozen.terms["temporal_std"]) == pytest.approx(1 - 0.01)


def test_visreg_separates_scale_shape_and_centre():
    # 127 samples so that the normal quantiles at i / 128 are matched exactly by the last one.
    exact = torch.tensor(norm.ppf(np.arange(1, 128) / 128), dtype=torch.float32)[None, :, None]
    objective = objectives.make("visreg", latent=1)
    spread = float(exact.square().mean().sqrt())
    terms = objective.terms(2 * exact + 3, exact, generator())
    assert float(terms["centre"]) == pytest.approx(9, rel=1e-4)
    assert float(terms["scale"]) == pytest.approx((2 * spread - 1) ** 2, rel=1e-4)
    assert float(terms["shape"]) == pytest.approx((1 / spread - 1) ** 2 * spread**2, rel=1e-3)


def test_subspaces_are_orthonormal_in_themselves_and_never_trained():
    objective = objectives.make("sub-jepa")
    gram = objective.bases @ objective.bases.transpose(1, 2)
    torch.testing.assert_close(gram, torch.eye(6).expand(32, 6, 6), rtol=1e-5, atol=1e-5)
    assert not list(objective.parameters())


def test_sd_jepa_keeps_only_the_content_gaussian_and_orders_the_progression():
    latents = torch.randn(4, 16, 8, generator=generator())
    objective = objectives.make("sd-jepa", latent=8, progression=2)
    before = loss_of(objective, latents).terms
    latents[..., :2] = torch.tensor([3.0, 4.0])
    after = loss_of(objective, latents).terms
    assert torch.equal(before["ep"], after["ep"])
    assert float(after["triplet"]) == pytest.approx(0.2)  # all alike: the margin itself


def test_smwm_learns_the_actions_between_two_latents():
    objective = objectives.make("smwm", latent=4, action_size=3)
    latents = torch.randn(2, 256, 4, generator=generator())
    actions = (latents[1] - latents[0])[..., :3].expand(2, -1, -1)
    optimiser = torch.optim.Adam(objective.parameters(), lr=3e-3)
    errors = []
    for _ in range(150):
        loss = objective.terms(latents, actions, generator())["inverse"]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        errors.append(float(loss.detach()))
    assert errors[-1] < 0.1 * errors[0]
