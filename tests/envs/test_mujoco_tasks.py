"""Reacher and Cube against their written physics."""

import mujoco
import numpy as np
import pytest

import envs
from envs.coarse import coarse


@pytest.fixture(scope="module")
def reacher():
    return envs.make("reacher")


@pytest.fixture(scope="module")
def cube():
    return envs.make("cube")


def test_reacher_has_the_published_arm(reacher):
    model = reacher.model

    assert model.opt.timestep == 0.02
    assert reacher.control_hz * model.opt.timestep * 2 == pytest.approx(1)
    np.testing.assert_allclose(model.joint("wrist").range, np.deg2rad([-160, 160]))
    np.testing.assert_allclose(model.actuator_gear[:, 0], 0.05)
    assert model.geom("target").rgba[3] == 0


def test_reacher_damps_and_accelerates_as_torque_says(reacher):
    rest = np.array([0.3, 1.0, 0.0, 0.0])

    np.testing.assert_allclose(reacher.advance(rest, np.zeros(2)), rest, atol=1e-9)
    assert reacher.advance(rest, np.array([1.0, 0.0]))[2] > 0
    assert abs(reacher.advance(np.array([0.3, 1.0, 1.0, 0.0]), np.zeros(2))[2]) < 1


@pytest.mark.parametrize(
    ("difference", "solved"),
    [
        ((0.049, -0.049), True),
        ((0.051, 0), False),
        ((0, 0.051), False),
        ((2 * np.pi + 0.04, 0), True),  # the shoulder turns without end
        ((0, 2 * np.pi), False),  # the wrist does not
    ],
)
def test_reacher_compares_the_shoulder_modulo_a_turn_and_the_wrist_as_it_is(reacher, difference, solved):
    goal = np.array([3.1, -0.5, 0.0, 0.0])

    assert reacher.success(goal + np.array([*difference, 1.0, 1.0]), goal) == solved


def test_cube_success_is_four_centimetres_of_the_cubes_centre(cube):
    goal = cube.start(np.random.default_rng(0))
    near, far, turned = goal.copy(), goal.copy(), goal.copy()
    near[14] += 0.0399
    far[14] += 0.0401
    turned[:14] += 0.5

    assert cube.success(near, goal)
    assert not cube.success(far, goal)
    assert cube.success(turned, goal)


def test_cube_moves_its_effector_as_the_action_says(cube):
    state = cube.start(np.random.default_rng(1))
    before = cube._seen(state)["proprio/effector_pos"]
    for _ in range(4):
        state = cube.advance(state, np.array([0, 0.5, 0, 0, 0]))
    moved = cube._seen(state)["proprio/effector_pos"] - before

    assert moved[1] > 0.03
    assert abs(moved[0]) < 0.02
    assert abs(moved[2]) < 0.02


def test_cube_starts_where_ogbench_starts_it(cube):
    for seed in range(5):
        state = cube.start(np.random.default_rng(seed))
        x, y, z = state[14:17]
        assert 0.3 <= x <= 0.55
        assert -0.3 <= y <= 0.3
        assert z == pytest.approx(0.02, abs=1e-3)


def test_the_cube_is_lifted_and_set_down_again_and_again(cube):
    states, _ = cube.episode(np.random.default_rng(3), 200)
    lifted = states[:, 16] > 0.08

    assert np.count_nonzero(np.diff(lifted.astype(int)) == 1) >= 2


def test_an_episode_of_cube_has_no_randomness_but_its_own(cube, monkeypatch):
    """OGBench's oracle draws from numpy's global generator, of which no seed of ours knows."""
    episodes = []
    for extreme in (np.minimum, np.maximum):
        monkeypatch.setattr(np.random, "uniform", lambda low, high, extreme=extreme: extreme(low, high))
        episodes.append(cube.episode(np.random.default_rng(3), 120)[0])

    np.testing.assert_array_equal(*episodes)


def test_no_goal_cube_is_in_the_picture(cube):
    """Two goals, one state: the same picture."""
    state = cube.start(np.random.default_rng(4))
    first = cube.draw(state)
    cube.set_goal(cube.start(np.random.default_rng(5)))

    np.testing.assert_array_equal(first, cube.draw(state))
    red = (first[..., 0] > 150) & (first[..., 1] < 120) & (first[..., 2] < 150)
    assert 2 <= np.count_nonzero(red) <= 60


def test_a_coarse_arm_costs_a_fraction_of_the_faces_looks_alike_and_moves_alike(cube, monkeypatch):
    state = cube.start(np.random.default_rng(2))
    before, model = cube.advance(state, np.ones(5)), coarse(cube.model)

    assert model.mesh_facenum.sum() < 0.1 * cube.model.mesh_facenum.sum()
    np.testing.assert_array_equal(cube.advance(state, np.ones(5)), before)  # the arm that is simulated is not touched
    drawn = cube.draw(state).astype(int)
    monkeypatch.setattr("envs.mujoco_task.coarse", lambda model: model)
    assert np.abs(drawn - envs.make("cube").draw(state)).mean() < 2  # of 255


def test_a_mesh_smaller_than_a_cell_keeps_its_faces():
    corners = "0 0 0  .001 0 0  0 .001 0  0 0 .001"
    model = mujoco.MjModel.from_xml_string(
        f'''<mujoco><asset><mesh name="speck" vertex="{corners}"/></asset><worldbody><body><geom type="mesh"
        mesh="speck"/></body></worldbody></mujoco>'''
    )
    assert coarse(model).mesh_facenum[0] == model.mesh_facenum[0] == 4
