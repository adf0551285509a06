"""Hindsight: later frames of an episode as goals, from episodes that do not stray."""

import numpy as np
import pytest
import torch

from envs.collect import Collect, collect
from envs.dataset.reader import open_dataset
from tests.moving_dot import write
from training.data.hindsight import Hindsight, aimed


def test_proposals_learn_from_the_episodes_that_do_not_stray_if_there_are_any(tmp_path):
    files = {every: tmp_path / f"{every}.h5" for every in (1, 3)}
    for every, file in files.items():
        collect(Collect("two-room", file, episodes=7, steps=20, stray=0.5, stray_every=every), progress=False)
    some, all_of_them = (open_dataset(files[every]) for every in (3, 1))
    assert aimed(some, np.arange(7)).tolist() == [1, 2, 4, 5]
    assert aimed(all_of_them, np.arange(2, 7)).tolist() == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("every", [1, 5])
def test_goals_are_frames_of_the_same_episode_up_to_the_reach(tmp_path, every):
    data = open_dataset(write(tmp_path / "dot.h5", episodes=6, steps=30, side=8, every=every))
    rows = torch.arange(len(data.pixels), dtype=torch.float32)[:, None]
    hindsight = Hindsight.of(data, np.arange(6), 5, rows, reach=20)
    index = np.tile(np.arange(len(hindsight)), 40)
    samples = hindsight.draw(index, np.random.default_rng(0))
    start, goal = samples.latents[:, 0].long().numpy(), samples.goals[:, 0].long().numpy()
    steps = (goal - start) * every
    assert np.array_equal(np.unique(steps), np.arange(5, 21, every))
    assert np.array_equal(start // (30 // every + 1), goal // (30 // every + 1))  # rows of one episode
    np.testing.assert_allclose(samples.blocks_left[:, 0], steps / 5)
    block = data.action[start[0] : start[0] + 5 // every].reshape(-1)
    np.testing.assert_array_equal(samples.actions[0], block)
