"""The diagnostics: each number moves when, and only when, what it stands for moves."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import kstest

import models
from envs.dataset.reader import open_dataset
from tests.moving_dot import write
from training.data.windows import action_scale, split
from training.measures import diagnostics, plots, probes
from training.measures.held_out import HeldOut, predictions

torch.set_num_threads(1)  # the test workers already share the cores


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# ---- normality and spread --------------------------------------------------------------------------------------------


def test_a_standard_normal_looks_normal():
    measured = diagnostics.normality(normal(4000, 16), slices=64)
    assert measured["qq_rmse"] < 0.04
    assert measured["ks"] < 0.02
    assert measured["ep"] < 2
    assert measured["tail_rate"] == pytest.approx(0.1, abs=0.02)


def test_heavy_tails_raise_the_tail_rate_and_the_distances():
    gaussian = normal(4000, 16)
    heavy = gaussian * torch.exp(0.5 * normal(4000, 1, seed=1))
    light, wild = diagnostics.normality(gaussian, 64), diagnostics.normality(heavy, 64)
    assert wild["tail_rate"] > 2 * light["tail_rate"]
    assert all(wild[name] > 2 * light[name] for name in ("qq_rmse", "ks", "ep"))


def test_the_kolmogorov_smirnov_distance_is_the_textbook_one():
    sample = 0.3 + 1.2 * normal(200, 1)
    expected = kstest(sample[:, 0].numpy(), "norm").statistic
    mirrored = kstest(-sample[:, 0].numpy(), "norm").statistic
    assert diagnostics.normality(sample, slices=1)["ks"] in (
        pytest.approx(expected, rel=1e-4),
        pytest.approx(mirrored, rel=1e-4),
    )


def test_normality_does_not_depend_on_how_the_directions_are_cut_up(monkeypatch):
    latents = normal(300, 8)
    whole = diagnostics.normality(latents, slices=50)
    monkeypatch.setattr(diagnostics, "CHUNK", 2000)
    assert diagnostics.normality(latents, slices=50) == pytest.approx(whole, rel=1e-5)


def test_the_effective_rank_counts_the_dimensions_in_use():
    assert diagnostics.spread(normal(5000, 12))["effective_rank"] == pytest.approx(12, rel=0.01)
    three = normal(5000, 3) @ torch.linalg.qr(normal(12, 12, seed=1)).Q[:3]
    assert diagnostics.spread(three)["effective_rank"] == pytest.approx(3, rel=0.01)


def test_constant_latents_have_no_spread_and_no_error():
    measured = diagnostics.spread(torch.ones(10, 4))
    assert measured["std_max"] == 0
    assert math.isfinite(measured["effective_rank"])


def test_the_alarm_rings_for_collapsed_latents_only():
    healthy = diagnostics.spread(normal(500, 16))
    assert diagnostics.alarm(healthy) is None
    assert "raise the regulariser's --weight" in diagnostics.alarm(diagnostics.spread(0.01 * normal(500, 16)))
    line = normal(500, 1) * normal(1, 16, seed=1)
    assert "effective rank 1.0" in diagnostics.alarm(diagnostics.spread(line))


# ---- prediction ------------------------------------------------------------------------------------------------------


def test_a_perfect_prediction_has_no_error_and_a_copy_has_the_error_of_copying():
    latents = normal(50, 6, 8).cumsum(1)
    perfect = diagnostics.predictability(latents, latents[:, 1:], latents[:, 1:])
    assert (perfect["error_1"], perfect["error_5"]) == (0, 0)
    copied = diagnostics.predictability(latents, latents[:, :-1], latents[:, :1].expand(-1, 5, -1))
    assert copied["error_1_to_copy"] == pytest.approx(1)
    assert copied["error_5_to_copy"] == pytest.approx(1)
    assert copied["error_5"] == pytest.approx(copied["change_5"])
    assert copied["change_5"] > copied["change_1"] > 0


def test_errors_are_relative_to_the_variance_of_the_latents():
    latents, guess = normal(50, 6, 8), normal(50, 5, 8, seed=1)
    small = diagnostics.predictability(latents, guess, guess)
    large = diagnostics.predictability(10 * latents, 10 * guess, 10 * guess)
    assert large == pytest.approx(small, rel=1e-4)


def test_held_out_predictions_see_the_history_and_open_loop_only_the_first_frame():
    torch.manual_seed(0)
    model = models.build("compact", action_dim=2, latent=8).eval()
    torch.nn.init.normal_(model.pred_proj.weight)
    latents, actions = normal(2, 6, 8), normal(2, 6, 10, seed=1)
    one_step, open_loop = predictions(model, latents, actions)
    torch.testing.assert_close(one_step[:, 4], model.predict(latents[:, 2:5], actions[:, 2:5])[:, -1])
    torch.testing.assert_close(open_loop[:, 0], model.predict(latents[:, :1], actions[:, :1])[:, 0])
    latents[:, 1:] += 1
    torch.testing.assert_close(predictions(model, latents, actions)[1], open_loop)


def test_measuring_leaves_the_model_as_it_was(tmp_path):
    data = open_dataset(write(tmp_path / "dot.h5", episodes=4, side=32))
    train, held = split(data)
    model = models.build("compact", action_dim=2, image_size=32, latent=8).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    held_out = HeldOut(data, train, held, action_scale(data, train)[0], block=5)
    first, second = held_out.measure(model, slices=8), held_out.measure(model, slices=8)
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert first == second


# ---- probes ----------------------------------------------------------------------------------------------------------


def test_a_linear_probe_finds_what_is_linear_and_only_the_mlp_finds_what_is_not():
    seen, unseen = normal(3000, 6), normal(1000, 6, seed=1)

    def truth(latents):
        return torch.stack([latents[:, 0] - 2 * latents[:, 1], latents[:, 2] * latents[:, 3]], 1)

    scores = probes.score(seen, truth(seen), unseen, truth(unseen))
    assert scores["linear"][0] > 0.99
    assert scores["linear"][1] < 0.1
    assert scores["mlp"][0] > 0.95
    assert scores["mlp"][1] > 0.7


def test_a_probe_finds_nothing_in_noise_and_skips_what_is_constant():
    seen, unseen = normal(2000, 6), normal(500, 6, seed=1)
    known = torch.stack([normal(2000, seed=2), torch.ones(2000)], 1)
    scores = probes.score(seen, known, unseen, torch.stack([normal(500, seed=3), torch.ones(500)], 1))
    assert scores["linear"][0] < 0.05
    assert np.isnan(scores["mlp"][1])


def test_angles_are_probed_as_cosine_and_sine_and_velocities_not_at_all():
    state = np.array([[1.0, 2.0, np.pi, 5.0, 6.0, 0.0]])
    names = ("agent_x", "block_y", "block_angle", "agent_vx", "wrist_velocity", "shoulder")
    columns, labels = probes.factors(state, names)
    assert labels == ["agent_x", "block_y", "cos block_angle", "sin block_angle", "cos shoulder", "sin shoulder"]
    np.testing.assert_allclose(columns, [[1, 2, -1, 0, 1, 0]], atol=1e-12)


def test_the_picture_is_drawn_from_any_stage_of_a_log(tmp_path):
    held_out = {"error_1": 0.5, "error_5": 0.9, "tail_rate": 0.0, "r2_linear/x": -3.0}
    lines = [
        {"step": 0, "held_out": held_out},
        {"step": 10, "train": {"loss": 1.0, "prediction": 0.5, "qq": 0.1, "qq_weighted": 0.35}},
    ]
    for count in range(3):
        plots.draw(lines[:count], tmp_path / "training.png", "a run")
        assert (tmp_path / "training.png").read_bytes().startswith(b"\x89PNG")
