"""What the mouse does to a playback, at points of the frame; no window is needed for it."""

import numpy as np
import pytest

from agent.viewer.frame import GOAL_PANE, NOW, PANE
from tests.agent.viewer.playing import drag, press, record, settle


def at(pane, x, y):
    """The point of the frame that lies at `x` and `y` of a pane."""
    return np.array([pane.x + x, pane.y + y], float)


def test_a_drag_pushes_the_goal_object(paused):
    before = record(paused)
    drag(paused, at(NOW, 100, 100), at(NOW, 140, 80))
    pushed = record(paused).pushed
    expected = np.clip(before.state + np.array([40, -20]) * 224 / PANE, 0.06 * 224, 0.94 * 224) - before.state
    np.testing.assert_allclose(pushed, expected, atol=1e-9)
    assert paused.view.arrow is None


def test_an_arrow_is_drawn_while_pushing_and_an_unsteady_hand_pushes_nothing(paused):
    paused.press(at(NOW, 100, 100))
    paused.drag(at(NOW, 160, 100))
    assert paused.view.arrow == (NOW.x + 100, NOW.y + 100, NOW.x + 160, NOW.y + 100)
    count = paused.playback.count
    paused.release(at(NOW, 101, 100))
    settle(paused)
    assert paused.playback.count == count


def test_a_click_on_the_goal_places_it_there(paused):
    point = at(GOAL_PANE, 0.75 * PANE, 0.5 * PANE)
    drag(paused, point, point)
    np.testing.assert_allclose(record(paused).goal, [0.75 * 224, 0.5 * 224], atol=1.5)


def test_in_pusht_the_t_is_dragged_and_the_wheel_turns_it(open_viewer):
    viewer = open_viewer(task="pusht", rule="zero", goal="100,100,300,300,0.5,0,0")
    press(viewer, "space")
    x, y = np.array([310, 300]) / 512 * PANE
    drag(viewer, at(GOAL_PANE, x, y), at(GOAL_PANE, x - 30, y))
    np.testing.assert_allclose(record(viewer).goal[:5], [100, 100, 300 - 30 * 512 / PANE, 300, 0.5], atol=3)

    viewer.wheel(at(GOAL_PANE, x, y), 3)
    settle(viewer)
    assert record(viewer).goal[4] == pytest.approx(0.5 + np.pi / 6, abs=0.01)


def test_a_task_without_a_floor_plan_answers_with_a_hint(paused, monkeypatch):
    for declared in ("floor_plan", "drag"):
        monkeypatch.setattr(type(paused.task), declared, None)
    paused.press(at(NOW, 10, 10))
    assert "nothing can be pushed" in paused.view.hint
    paused.press(at(GOAL_PANE, 10, 10))
    assert "cannot be placed" in paused.view.hint
    paused.playback.show([], paused.view)  # draws without candidates
