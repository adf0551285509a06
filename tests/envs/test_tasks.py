"""Every task keeps the contract of envs/base.py."""

import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import envs
from envs import BadInput

TASKS = list(envs.TASKS)
IDS = {"two-room": "TwoRoom", "pusht": "PushT", "reacher": "Reacher", "cube": "Cube"}


@pytest.fixture(params=TASKS)
def task(request):
    return envs.make(request.param)


def test_gymnasium_accepts_the_task(task):
    check_env(task)


@pytest.mark.parametrize("name", TASKS)
def test_the_task_is_registered_under_its_published_id(name):
    env = gymnasium.make(f"qqworld/{IDS[name]}-v0", size=32)

    observation, info = env.reset(seed=1)

    assert env.unwrapped.name == name
    assert observation.shape == (32, 32, 3)
    assert observation.dtype == np.uint8
    assert info["state"].shape == (len(env.unwrapped.state_names),)


def test_a_state_replays_bit_for_bit_in_the_middle_of_an_episode(task):
    rng = np.random.default_rng(0)
    task.reset(seed=0)
    policy = task.expert(rng)
    for _ in range(30):
        task.step(policy(task.state()))
    before, actions = task.state(), rng.uniform(-1, 1, (8, len(task.action_names)))

    first = [task.step(action) for action in actions]
    task.reset(seed=99)
    task.set_state(before)
    again = [task.step(action) for action in actions]

    for (seen, *_, info), (seen_again, *_, info_again) in zip(first, again, strict=True):
        np.testing.assert_array_equal(info["state"], info_again["state"])
        np.testing.assert_array_equal(seen, seen_again)


def test_another_simulator_in_the_same_state_sees_and_does_the_same(task):
    task.reset(seed=3)
    twin = envs.make(task.name)
    twin.reset(seed=4)
    twin.set_state(task.state())
    action = np.full(len(task.action_names), 0.5)

    seen, *_, info = task.step(action)
    twin_seen, *_, twin_info = twin.step(action)

    np.testing.assert_array_equal(info["state"], twin_info["state"])
    np.testing.assert_array_equal(seen, twin_seen)


def test_pictures_do_not_disturb_the_episode(task):
    task.reset(seed=0)
    before = task.state()

    picture = task.picture(96)
    task.picture(64, state=task.goal)

    assert picture.shape == (96, 96, 3)
    np.testing.assert_array_equal(task.state(), before)


def test_success_and_distance_take_one_state_or_many(task):
    states, _ = task.episode(np.random.default_rng(5), 30)
    goal = states[-1]

    many, far = task.success(states, goal), task.distance(states, goal)

    assert many.shape == far.shape == (31,)
    assert many[-1]
    assert far[-1] == 0
    for state, is_there, distance in zip(states, many, far, strict=True):
        assert task.success(state, goal) == is_there
        assert task.distance(state, goal) == distance


def test_the_data_policy_stays_in_the_action_box_and_moves_the_goals_object(task):
    states, actions = task.episode(np.random.default_rng(6), 100)

    assert np.abs(actions).max() <= 1
    assert task.moved(states[:-25], states[25:]).mean() > 0.5


def test_the_paper_look_is_224_pixels_wide(task):
    paper = envs.make(task.name, look="paper")

    observation, _ = paper.reset(seed=0)

    assert observation.shape == (224, 224, 3)


def test_reset_goes_to_a_given_state_and_goal(task):
    states, _ = task.episode(np.random.default_rng(8), 5)

    _, info = task.reset(options={"state": states[0], "goal": states[5]})

    np.testing.assert_array_equal(info["state"], states[0])
    np.testing.assert_array_equal(task.goal, states[5])


def test_bad_states_and_actions_are_refused_in_one_sentence(task):
    task.reset(seed=0)
    size, width = len(task.state_names), len(task.action_names)

    for call, bad, words in [
        (task.set_state, np.zeros(size + 1), f"has {size} numbers"),
        (task.set_state, np.full(size, np.nan), "must be finite"),
        (task.set_state, "nonsense", f"is {size} numbers"),
        (task.set_goal, np.zeros((2, size)), f"has {size} numbers"),
        (task.step, np.full(width, np.nan), "must be finite"),
        (task.step, np.full(width, 1.5), "[-1, 1]"),
        (task.step, np.zeros(width + 1), f"has {width} numbers"),
    ]:
        before = task.state()
        with pytest.raises(BadInput) as caught:
            call(bad)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
        np.testing.assert_array_equal(task.state(), before)


@pytest.mark.parametrize("settings", [{"size": 0}, {"size": -1}, {"size": 2.5}, {"size": 10**6}, {"look": "pretty"}])
def test_bad_settings_are_refused_in_one_sentence(settings):
    with pytest.raises(BadInput, match=r"side|look"):
        envs.make("two-room", **settings)


def test_an_unknown_task_is_refused_with_the_list_of_known_ones():
    with pytest.raises(BadInput, match="choose one of two-room, pusht, reacher, cube"):
        envs.make("atari")


@pytest.mark.parametrize(("value", "works"), [("nonsense", False), ("disabled", False), ("osmesa", True)])
def test_a_gl_backend_of_the_users_choice_is_respected_or_named_as_the_fault(value, works):
    program = (
        "import envs; task = envs.make('reacher', size=16); task.reset(seed=0); print(task.observation_space.shape)"
    )
    clean = {k: v for k, v in os.environ.items() if k not in ("QQWORLD_GL_CHECKED", "PYOPENGL_PLATFORM")}
    guarded = f"from envs.errors import run\ndef main():\n    {program}\nrun(main)"

    child = subprocess.run(
        [sys.executable, "-c", guarded], env={**clean, "MUJOCO_GL": value}, capture_output=True, text=True
    )

    assert child.returncode == (0 if works else 2), child.stderr
    if not works:
        assert f"MUJOCO_GL={value}" in child.stderr
        assert "apt-get install" in child.stderr
        assert "Traceback" not in child.stderr
