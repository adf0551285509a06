"""Proposals recover a known inverse and keep modes apart."""

from pathlib import Path

import numpy as np
import pytest
import torch

from envs.dataset.reader import Dataset
from training.data.hindsight import Hindsight
from training.phases.proposal_loss import loss, make_network, measure

torch.set_num_threads(1)  # the test workers already share the cores

GAIN, BLOCK = 0.2, 5


def walks(policy, episodes: int = 200, steps: int = 40) -> tuple[Dataset, torch.Tensor]:
    """Walks of a point under actions `policy(rng, steps)` `(steps, 2)`, and its positions as the rows' latents."""
    rng = np.random.default_rng(0)
    taken = np.stack([policy(rng, steps) for _ in range(episodes)])
    start = rng.uniform(-1, 1, (episodes, 1, 2))
    states = np.concatenate([start, start + GAIN * np.cumsum(taken, axis=1)], axis=1).reshape(-1, 2)
    action = np.concatenate([taken, np.full((episodes, 1, 2), np.nan)], axis=1).reshape(-1, 2)
    data = Dataset(
        path=Path("walks"),
        pixels=np.empty((len(states), 1, 1, 3), np.uint8),
        action=action.astype(np.float32),
        state=states,
        offset=np.arange(episodes) * (steps + 1),
        length=np.full(episodes, steps + 1),
        task=None,
        frame_skip=1,
        state_names=("x", "y"),
        strays=np.zeros(episodes, bool),
    )
    return data, torch.from_numpy(states).float()


def learned(hindsight: Hindsight, components: int, steps: int, draw):
    """A network after some steps on the samples that `draw(rng)` gives."""
    torch.manual_seed(0)
    scale = torch.zeros(2 * BLOCK), torch.ones(2 * BLOCK)
    network = make_network(hindsight.latents, *scale, components=components, width=64, depth=2)
    optimiser = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=3e-3)
    rng = np.random.default_rng(1)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = 3e-3 * (1 - step / steps)
        optimiser.zero_grad()
        loss(network, draw(rng)).backward()
        optimiser.step()
    return network.eval()


@pytest.fixture(scope="module")
def wanderer():
    """A network that has seen walks of independent steps, and those walks."""
    data, latents = walks(lambda rng, steps: rng.normal(0.0, 1.0, (steps, 2)))
    hindsight = Hindsight.of(data, np.arange(len(data.length)), BLOCK, latents, reach=25)
    return learned(
        hindsight, 1, 500, lambda rng: hindsight.draw(rng.integers(len(hindsight), size=512), rng)
    ), hindsight


@torch.no_grad()
def ask(network, start, goal, blocks_left):
    mixture = network.propose(
        *(torch.tensor(np.array([each]), dtype=torch.float32) for each in (start, goal, [blocks_left]))
    )
    return (part[0].numpy() for part in mixture)


@pytest.mark.parametrize(("way", "blocks"), [((1.0, -1.0), 1), ((-0.5, 1.0), 1), ((1.0, 2.0), 2), ((-2.0, 1.0), 4)])
def test_on_a_walk_of_independent_steps_the_known_inverse_is_recovered(wanderer, way, blocks):
    """Of steps that add up to a displacement, each is expected to be its equal share."""
    for start in ([0.0, 0.0], [0.5, -0.5]):
        _, means, _ = ask(wanderer[0], start, np.add(start, way), blocks)
        share = np.array(way) / (GAIN * BLOCK * blocks)
        np.testing.assert_allclose(means[0].reshape(BLOCK, 2), np.tile(share, (BLOCK, 1)), atol=0.2)


def detour(rng, steps):
    """Straight on, and round obstacles either way: a block to the left then one to the right, or the reverse."""
    sides = np.repeat(rng.choice([-1.0, 1.0], steps // (2 * BLOCK)), 2 * BLOCK)
    sides *= np.tile(np.repeat([1.0, -1.0], BLOCK), steps // (2 * BLOCK))
    return np.stack([np.ones(steps), sides], axis=1)


@pytest.mark.parametrize("components", [1, 5])
def test_a_mixture_keeps_two_ways_apart_and_a_mean_lies_between_them(components):
    data, latents = walks(detour, steps=2 * BLOCK)
    latents -= latents.view(-1, 2 * BLOCK + 1, 2)[:, :1].expand(-1, 2 * BLOCK + 1, -1).reshape(-1, 2)
    hindsight = Hindsight.of(data, np.arange(len(data.length)), BLOCK, latents, reach=2 * BLOCK)
    network = learned(hindsight, components, 150, lambda rng: hindsight.apart(2))
    weights, means, _ = ask(network, [0.0, 0.0], [2 * BLOCK * GAIN, 0.0], 2)
    sides = means.reshape(components, BLOCK, 2)[:, :, 1].mean(axis=1)
    if components == 1:
        assert abs(sides[0]) < 0.2
    else:
        chosen = sides[weights > 0.2]
        np.testing.assert_allclose([chosen.min(), chosen.max()], [-1, 1], atol=0.1)


def test_errors_are_measured_by_distance_and_grow_with_it(wanderer):
    measured = measure(*wanderer)
    assert list(measured) == [f"{what}_{n}" for n in (1, 2, 3, 5) for what in ("error", "nll")]
    assert measured["error_1"] < measured["error_5"] < 1.1  # of a far goal nothing follows for a single step
