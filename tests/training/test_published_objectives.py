"""The objectives that QQ is compared with: VICReg, PLDM, VISReg, Sub-JEPA, SD-JEPA and SMWM."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from tests.training.objective_losses import generator, loss_of
from training import objectives
from training.objectives.vicreg import covariance


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
