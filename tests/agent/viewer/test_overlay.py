"""What lies over the picture: where actions lead, and what a drag means."""

import numpy as np
import pytest

import envs
from agent.viewer import overlay


@pytest.mark.parametrize("name", ["two-room", "pusht"])
def test_the_fan_leads_where_the_simulator_goes_on_a_free_floor(name):
    task, rng = envs.make(name), np.random.default_rng(1)
    state = np.array([60.0, 120.0]) if name == "two-room" else np.array([250, 250, 60, 60, 0.3, 40, -20.0])
    actions = rng.uniform(-0.5, 0.5, (3, 10, 2))
    shares = overlay.paths(task, state, actions)
    for path, sequence in zip(shares, actions, strict=True):
        reached = state
        for action in sequence:
            reached = task.advance(reached, action)
        np.testing.assert_allclose(path[-1] * task.floor_plan.side, reached[:2], atol=1e-6)


def test_a_task_without_a_floor_plan_has_no_fan():
    class Unknown(envs.Task):
        name, state_names, action_names, control_hz = "unknown", ("x", "y"), ("dx", "dy"), 10

    assert overlay.paths(Unknown(), np.zeros(2), np.zeros((1, 1, 2))) is None
    assert overlay.grab(Unknown(), np.zeros(2), np.zeros(2)) is None
    assert overlay.turned(Unknown(), np.zeros(2), 1.0) is None
    assert overlay.displacement(Unknown(), np.zeros(2), np.zeros(2)) is None


@pytest.mark.parametrize(("name", "near"), [("reacher", 0.002), ("cube", 0.05)])
def test_the_paths_of_an_arm_lead_where_the_simulator_takes_its_end(name, near):
    task, rng = envs.make(name), np.random.default_rng(1)
    state = task.start(rng)
    actions = rng.uniform(-1, 1, (2, 1, len(task.action_names))) * np.ones((1, 6, 1))  # a steady push each
    shares = overlay.paths(task, state, actions)
    assert shares.shape == (2, 7, 2)
    assert ((shares > -0.2) & (shares < 1.2)).all()
    for path, sequence in zip(shares, actions, strict=True):
        reached = state
        for action in sequence:
            reached = task.advance(reached, action)
        here = overlay.paths(task, reached, sequence[None, :0])[0, 0]
        np.testing.assert_allclose(path[-1], here, atol=near)


def test_the_end_of_reacher_s_arm_is_where_its_picture_shows_it():
    task = envs.make("reacher", size=200)
    state = np.array([0.4, -0.9, 0.0, 0.0])
    ((x, y),) = overlay.paths(task, state, np.zeros((1, 0, 2)))[0] * 200
    floor = np.median(task.draw(state).reshape(-1, 3), axis=0)
    there = task.draw(state)[round(y) - 3 : round(y) + 4, round(x) - 3 : round(x) + 4]
    assert (np.abs(there - floor).max(axis=-1) > 40).mean() > 0.6


@pytest.mark.parametrize("name", ["two-room", "pusht", "reacher"])
def test_a_drag_moves_the_goal_object(name):
    task = envs.make(name)
    state = task.start(np.random.default_rng(0))
    push = overlay.displacement(task, state, np.array([0.2, 0.2]))
    assert push.shape == (len(task.movable),)
    after = state.copy()
    after[list(task.movable)] += push
    assert task.moved(state, after)
