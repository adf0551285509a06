"""Evaluation pairs are fresh, unsolved, reproducible and hard for an agent that does not try."""

import numpy as np
import pytest

import envs


@pytest.mark.parametrize("name", ["two-room", "pusht", "reacher"])
def test_pairs_are_unsolved_one_an_episode_and_a_longer_list_begins_with_the_shorter(name):
    task = envs.make(name)

    few, many = envs.pairs(name, seed=100, n=5), envs.pairs(task, seed=100, n=12)

    assert envs.fingerprint(few) == envs.fingerprint(many[:5])
    assert len({pair.episode for pair in many}) == 12
    assert not any(task.success(pair.start, pair.goal) for pair in many)


def test_the_goal_of_a_pair_is_what_the_data_policy_reaches_25_steps_later():
    task = envs.make("two-room")
    pair = envs.pairs(task, seed=101, n=1)[0]

    steps = np.linalg.norm(pair.goal - pair.start) / np.hypot(5, 5)

    assert 0 < steps <= 25
    assert envs.OFFSET == 25


def test_seeds_and_offsets_give_different_pairs():
    prints = {
        envs.fingerprint(envs.pairs("two-room", seed=seed, n=4, offset=offset))
        for seed, offset in [(100, 25), (101, 25), (100, 50)]
    }

    assert len(prints) == 3


def test_cube_pairs_move_the_cube():
    task = envs.make("cube")

    for pair in envs.pairs(task, seed=100, n=2):
        assert task.distance(pair.start, pair.goal) > 0.04


@pytest.mark.parametrize("bad", [{"seed": -1, "n": 5}, {"seed": 0, "n": 0}, {"seed": 0, "n": 1, "offset": 0}])
def test_bad_requests_are_refused_in_one_sentence(bad):
    with pytest.raises(envs.BadInput, match="pairs need"):
        envs.pairs("two-room", **bad)
