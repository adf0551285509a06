"""PushT against its written physics."""

import numpy as np
import pymunk
import pytest

import envs
from envs import pusht

task = envs.make("pusht")
FAR_BLOCK = [300.0, 300.0, 0.0]


def test_one_control_step_is_ten_steps_of_the_written_pd_controller():
    state = np.array([100.0, 120.0, *FAR_BLOCK, 3.0, -4.0])
    action = np.array([0.3, -0.2])
    position, velocity = state[:2].copy(), state[5:].copy()
    target = position + 100 * action
    for _ in range(10):
        velocity = velocity + (100 * (target - position) + 20 * (0 - velocity)) * 0.01
        position = position + velocity * 0.01

    after = task.advance(state, action)

    np.testing.assert_allclose(after[:2], position, rtol=1e-12)
    np.testing.assert_allclose(after[5:], velocity, rtol=1e-12)
    np.testing.assert_array_equal(after[2:5], FAR_BLOCK)


def test_the_t_has_its_published_mass_moment_geometry_and_centre_of_gravity():
    bodies = pusht.Bodies()
    block = bodies.block
    bar, stem = ({tuple(map(round, vertex)) for vertex in shape.get_vertices()} for shape in block.shapes)
    if (-60, 0) not in bar:
        bar, stem = stem, bar

    assert bar == {(-60, 0), (60, 0), (60, 30), (-60, 30)}
    assert stem == {(-15, 30), (15, 30), (15, 120), (-15, 120)}
    assert tuple(block.center_of_gravity) == (0, 45)
    assert block.mass == 1
    assert block.moment == 2 * pymunk.moment_for_poly(1, [(-60, 30), (60, 30), (60, 0), (-60, 0)])
    with bodies.space(np.array([100.0, 100.0, 256.0, 256.0, 0.0, 0.0, 0.0])) as space:
        assert space.damping == 0
        assert tuple(space.gravity) == (0, 0)
        assert len(space.shapes) == 7
        assert all(shape.friction == 0 for shape in space.shapes)


def test_the_position_of_the_t_is_the_middle_of_its_bars_outer_edge_at_any_angle():
    bodies = pusht.Bodies()

    with bodies.space(np.array([100.0, 100.0, 300.0, 200.0, np.pi / 2, 0.0, 0.0])):
        np.testing.assert_allclose(bodies.block.position, (300, 200), atol=1e-9)
        np.testing.assert_allclose(bodies.block.local_to_world((0, 45)), (255, 200), atol=1e-9)


def test_pushing_the_middle_of_the_bar_moves_the_t_straight():
    state = np.array([256.0, 180.0, 256.0, 200.0, 0.0, 0.0, 0.0])

    for _ in range(5):
        state = task.advance(state, np.array([0.0, 0.5]))

    assert state[3] > 215
    np.testing.assert_allclose(state[[2, 4]] % (2 * np.pi - 1e-6), np.array([256, 0]) % (2 * np.pi - 1e-6), atol=0.05)


def test_pushing_beside_the_middle_turns_the_t_and_the_angle_stays_in_one_turn():
    state = np.array([300.0, 180.0, 256.0, 200.0, 0.0, 0.0, 0.0])

    for _ in range(5):
        state = task.advance(state, np.array([0.0, 0.5]))

    assert 0.2 < state[4] < np.pi
    assert (task.episode(np.random.default_rng(0), 100)[0][:, 4] >= 0).all()
    assert (task.episode(np.random.default_rng(0), 100)[0][:, 4] < 2 * np.pi).all()


def test_completing_the_pending_motion_changes_nothing_but_when_the_block_is_read():
    """The published loop, kept in one pymunk space, and ours stay together through a push."""
    state = np.array([256.0, 170.0, 256.0, 200.0, 0.1, 0.0, 0.0])
    bodies = pusht.Bodies()
    agent, block = bodies.agent, bodies.block
    with bodies.space(state) as space:
        for _ in range(6):
            target = agent.position + pymunk.Vec2d(2.0, 40.0)
            for _ in range(10):
                agent.velocity += (100 * (target - agent.position) - 20 * agent.velocity) * 0.01
                space.step(0.01)
            state = task.advance(state, np.array([0.02, 0.4]))

    np.testing.assert_allclose(state[:2], agent.position, atol=1e-9)
    pymunk.Body.update_position(block, 0.01)
    np.testing.assert_allclose(state[2:4], block.position, atol=1.0)
    np.testing.assert_allclose(state[4], block.angle % (2 * np.pi), atol=0.02)


@pytest.mark.parametrize(
    ("change", "solved"),
    [
        ([19.9, 0, 0, 0, 0], True),
        ([20.0, 0, 0, 0, 0], False),
        ([10, 10, 10, 9.9, 0], True),  # one 4-vector, not two distances
        ([10, 10, 10, 10.1, 0], False),
        ([0, 0, 0, 0, np.pi / 9 - 1e-6], True),
        ([0, 0, 0, 0, np.pi / 9 + 1e-6], False),
        ([0, 0, 0, 0, 2 * np.pi - 0.1], True),  # the short way round
    ],
)
def test_success_has_the_published_thresholds(change, solved):
    goal = np.array([100.0, 100.0, 300.0, 300.0, 0.05, 0.0, 0.0])
    state = goal + np.array([*change, 50.0, 50.0])

    assert task.success(state, goal) == solved


def test_the_reward_is_minus_the_distance_of_the_whole_state():
    goal = np.array([100.0, 100.0, 300.0, 300.0, 0.0, 0.0, 0.0])

    assert task.reward(goal + np.array([3, 0, 0, 4, 0, 0, 0]), goal) == pytest.approx(-5)


@pytest.mark.parametrize("look", ["fast", "paper"])
def test_the_picture_shows_agent_block_and_anchor_where_they_are(look):
    state = np.array([120.0, 400.0, 400.0, 100.0, 0.0, 0.0, 0.0])
    view = envs.make("pusht", look=look)
    picture = view.draw(state)

    def colour(x, y):
        return picture[int(y * view.size / 512), int(x * view.size / 512)].astype(int)

    np.testing.assert_allclose(colour(120, 400), (65, 105, 225), atol=60)
    np.testing.assert_allclose(colour(400, 180), (143, 163, 184), atol=12)
    np.testing.assert_allclose(colour(248, 264), (144, 238, 144), atol=12)
    np.testing.assert_allclose(colour(60, 60), (255, 255, 255), atol=2)


def test_the_pusher_keeps_inside_the_walls_and_pushes_from_every_side():
    headings = []
    for seed in range(12):
        states, _ = task.episode(np.random.default_rng(seed), 100)
        assert (states[:, :2] > 5).all()
        assert (states[:, :2] < 507).all()
        moving = np.linalg.norm(np.diff(states[:, 2:4], axis=0), axis=1) > 2
        push = np.diff(states[:, 2:4], axis=0)[moving]
        headings.append(np.arctan2(push[:, 1], push[:, 0]))
    share, _ = np.histogram(np.concatenate(headings), bins=8, range=(-np.pi, np.pi))

    assert (share / share.sum() > 0.04).all()
