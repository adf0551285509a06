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
        np.testing.assert_allclose(path[-1] * overlay.PLANS[name].side, reached[:2], atol=1e-6)


def test_a_task_without_a_floor_plan_has_no_fan():
    class Unknown:
        name = "unknown"

    assert overlay.paths(Unknown(), np.zeros(2), np.zeros((1, 1, 2))) is None
    assert overlay.grab(Unknown(), np.zeros(2), np.zeros(2)) is None
    assert overlay.turned(Unknown(), np.zeros(2), 1.0) is None
    assert overlay.displacement(Unknown(), np.zeros(2), np.zeros(2)) is None


@pytest.mark.parametrize("name", ["two-room", "pusht", "reacher"])
def test_a_drag_moves_the_goal_object(name):
    task = envs.make(name)
    state = task.start(np.random.default_rng(0))
    push = overlay.displacement(task, state, np.array([0.2, 0.2]))
    assert push.shape == (len(task.movable),)
    after = state.copy()
    after[list(task.movable)] += push
    assert task.moved(state, after)
