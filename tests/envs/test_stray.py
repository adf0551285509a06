"""Aimless spells in the data: as many as asked for, the same for the same seed, and none unless asked for."""

import numpy as np
import pytest

import envs
from envs import BadInput
from envs.base import straying
from envs.collect import Collect, collect
from envs.dataset.reader import open_dataset


def strayed(share: float, steps: int = 4000) -> float:
    """The share of steps in which a policy that always does the same did something else."""
    policy = straying(lambda state: np.zeros(2, np.float32), np.random.default_rng(0), share, 2)
    return float(np.mean([policy(np.zeros(2)).any() for _ in range(steps)]))


@pytest.mark.parametrize("share", [0.1, 0.2, 0.35])
def test_it_strays_for_about_the_share_of_the_time_that_was_asked_for(share):
    assert strayed(share) == pytest.approx(share, abs=0.06)


def test_a_spell_goes_one_way():
    policy = straying(lambda state: np.zeros(2, np.float32), np.random.default_rng(0), 0.999, 2)
    actions = np.stack([policy(np.zeros(2)) for _ in range(2000)])
    assert np.abs(actions).max() <= 1
    assert np.corrcoef(actions[:-1, 0], actions[1:, 0])[0, 1] > 0.2  # white noise has none


def test_episodes_that_stray_repeat_and_differ_from_those_that_do_not():
    task = envs.make("two-room")
    plain, once, again = (task.episode(np.random.default_rng(3), 30, stray)[0] for stray in (0.0, 0.5, 0.5))
    assert np.array_equal(once, again)
    assert not np.array_equal(once, plain)
    assert np.array_equal(plain, task.episode(np.random.default_rng(3), 30)[0])


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_that_makes_no_sense_is_refused(share, tmp_path):
    with pytest.raises(BadInput, match="--stray is a share"):
        Collect("two-room", tmp_path / "x.h5", stray=share).check()


def test_only_every_nth_episode_strays(tmp_path):
    files = {stray_every: tmp_path / f"{stray_every}.h5" for stray_every in (1, 2)}
    for stray_every, file in files.items():
        collect(Collect("two-room", file, episodes=4, steps=30, stray=0.5, stray_every=stray_every), progress=False)
    collect(Collect("two-room", tmp_path / "never.h5", episodes=4, steps=30), progress=False)

    always, sometimes, never = (
        open_dataset(path).state.reshape(4, 31, -1) for path in (*files.values(), tmp_path / "never.h5")
    )
    for episode in range(4):
        like = always if episode % 2 == 0 else never
        np.testing.assert_array_equal(sometimes[episode], like[episode])
    assert not np.array_equal(always, never)
