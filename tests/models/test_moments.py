"""The encoder that reads feature maps by their spatial moments."""

import torch

import models
from models.moments import SPREAD, Moments


def blob(x: float, y: float, along: float = 0.2, across: float = 0.1, angle: float = 0.0, side: int = 64):
    """The logarithm of an elongated Gaussian as one map `(1, 1, side, side)`; the picture spans [-1, 1]."""
    line = (torch.arange(side) + 0.5) * 2 / side - 1
    dy, dx = torch.meshgrid(line - y, line - x, indexing="ij")
    turn = torch.tensor(angle)
    u, v = dx * turn.cos() + dy * turn.sin(), dy * turn.cos() - dx * turn.sin()
    return -((u / along) ** 2 + (v / across) ** 2)[None, None] / 2


def test_moments_are_mean_covariance_and_third_central_moments():
    torch.manual_seed(0)
    maps = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    line = (torch.arange(8, dtype=torch.float64) + 0.5) / 4 - 1
    density = maps.flatten(2).softmax(-1)
    y, x = (part.flatten() for part in torch.meshgrid(line, line, indexing="ij"))
    mean_x, mean_y = density @ x, density @ y
    dx, dy = x - mean_x[..., None], y - mean_y[..., None]

    def mean(values: torch.Tensor, power: int) -> torch.Tensor:
        return (density * values).sum(-1) / SPREAD**power

    wanted = [mean_x, mean_y, mean(dx * dx, 2), mean(dx * dy, 2), mean(dy * dy, 2)]
    wanted += [mean(dx**3, 3), mean(dx * dx * dy, 3), mean(dx * dy * dy, 3), mean(dy**3, 3)]
    torch.testing.assert_close(Moments(8).double()(maps), torch.cat(wanted, 1), rtol=1e-5, atol=1e-5)


def test_moving_a_thing_changes_its_mean_alone():
    here, there = Moments(64)(blob(-0.3, 0.1))[0], Moments(64)(blob(0.2, -0.2))[0]
    torch.testing.assert_close((there - here)[:2], torch.tensor([0.5, -0.3]), rtol=0, atol=1e-3)
    torch.testing.assert_close(here[2:], there[2:], rtol=0, atol=1e-2)


def test_turning_a_thing_turns_its_second_moments():
    for angle in (0.0, 0.4, 1.1):
        xx, xy, yy = Moments(64)(blob(0.1, 0.1, angle=angle))[0, 2:5]
        assert abs(0.5 * torch.atan2(2 * xy, xx - yy) - angle) < 1e-2


def test_an_encoder_of_moments_takes_pictures_like_any_other():
    model = models.build("compact", action_dim=2, channels=(8, 12), stem=4, latent=16).eval()
    frames = torch.randint(0, 256, (2, 3, 64, 64, 3), dtype=torch.uint8)
    assert model.encode(frames).shape == (2, 3, 16)
    assert model.encoder.features == 9 * 12
