"""Two-Room against its written physics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import envs
from envs.two_room import DOOR_BOTTOM, DOOR_TOP, HIGH, LOW, WALL_LEFT, WALL_RIGHT

task = envs.make("two-room")


@pytest.mark.parametrize(
    ("start", "action", "end"),
    [
        ((50, 100), (1, -0.5), (55, 97.5)),  # five pixels a unit
        ((98, 150), (1, 0), (99.5, 150)),  # the wall stops it half a pixel before contact
        ((126, 150), (-1, 1), (124.5, 155)),  # from the other side, sliding along
        ((98, 49), (1, 0), (103, 49)),  # the door is open
        ((22, 100), (-1, 0), (21, 100)),  # the border
        ((201, 201), (1, 1), (203, 203)),
        ((98, 68), (1, -1), (99.5, 63)),  # met the wall beside the door although the end point lies in it
        ((112, 63), (0, 1), (112, DOOR_BOTTOM)),  # inside the doorway it slides along the edge
    ],
)
def test_a_move_ends_where_the_written_rules_say(start, action, end):
    np.testing.assert_allclose(task.advance(np.array(start, float), np.array(action, float)), end)


def test_a_walk_through_the_door_reaches_the_other_room():
    state = np.array([90.0, 49.0])

    for _ in range(10):
        state = task.advance(state, np.array([1.0, 0.0]))

    np.testing.assert_allclose(state, [140, 49])


@given(st.integers(0, 2**32 - 1))
def test_nobody_is_ever_inside_a_wall_or_passes_through_one(seed):
    rng = np.random.default_rng(seed)
    state = task.start(rng)
    state = np.clip(state, LOW, HIGH)
    for _ in range(60):
        after = task.advance(state, rng.uniform(-1, 1, 2))
        for share in np.linspace(0, 1, 21):
            x, y = state + share * (after - state)
            in_door = DOOR_TOP - 1e-9 <= y <= DOOR_BOTTOM + 1e-9
            assert not (WALL_LEFT + 1e-9 < x < WALL_RIGHT - 1e-9) or in_door
        assert (after >= LOW).all()
        assert (after <= HIGH).all()
        state = after


def test_success_is_less_than_sixteen_pixels():
    goal = np.array([50.0, 50.0])

    assert task.success(goal + np.array([15.99, 0]), goal)
    assert not task.success(goal + np.array([16.0, 0]), goal)


def test_the_published_picture_has_its_wall_door_border_and_agent():
    picture = envs.make("two-room", look="paper").draw(np.array([60.0, 150.0]))

    assert (picture[150, 60] == [255, 0, 0]).all()
    assert (picture[150, 107:118] == 0).all()
    assert (picture[150, [106, 118]] == 255).all()
    assert (picture[35:64, 107:118] == 255).all()
    assert (picture[[34, 64], 112] == 0).all()
    assert (picture[100, 10:14] == 0).all()
    assert (picture[100, 210:214] == 0).all()
    blend = np.exp(-(7**2) / (2 * 7**2))
    assert picture[150, 67].tolist() == [255, int(255 * (1 - blend)), int(255 * (1 - blend))]
