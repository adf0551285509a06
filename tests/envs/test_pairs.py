"""Evaluation pairs are fresh, unsolved and reproducible."""

import sys

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


def test_remembered_pairs_are_the_same_and_cost_nothing_the_second_time(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fresh = envs.pairs("two-room", seed=100, n=3)

    first = envs.remembered("two-room", 100, 3)
    monkeypatch.setattr(sys.modules["envs.evaluation_pairs"], "pairs", None)  # whoever looks for pairs now fails
    second = envs.remembered("two-room", 100, 3)

    assert envs.fingerprint(fresh) == envs.fingerprint(first) == envs.fingerprint(second)
    assert [pair[2:] for pair in fresh] == [pair[2:] for pair in second]


def test_a_damaged_memory_of_pairs_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = envs.remembered("two-room", 100, 2)
    (file,) = tmp_path.rglob("*.npz")
    file.write_bytes(b"PK no longer what it was")

    assert envs.fingerprint(envs.remembered("two-room", 100, 2)) == envs.fingerprint(first)
    assert len(np.load(file)["start"]) == 2
