"""Planners that use proposals: quick, guarded by the model's own predictions, and independent of their neighbours."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import envs
from agent import planning as planners
from agent.episodes.agents import ModelAgent
from agent.episodes.episode import Episode
from agent.planning.base import Problem
from agent.planning.proposals import ProposingPlanner, pick, roll
from envs import BadInput
from tests import tiny
from tests.analytic_world import PointWorld, ProposingRoomWorld, ProposingWorld

ROOT = Path(__file__).parents[3]
BOTH = ["propose", "guided"]


def problem(goal=(2.0, -1.0), seed=0, start=(0.0, 0.0), **more):
    return Problem(np.array([start]), np.empty((0, 10)), np.array(goal), np.random.default_rng(seed), **more)


def assert_same_plan(one, other):
    for part in ("actions", "latents", "distances", "elites", "candidates"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert (one.cost, one.source, one.costs) == (other.cost, other.source, other.costs)


def test_proposals_alone_reach_a_goal_without_a_search():
    world = ProposingWorld()
    plan = planners.make("propose", reach=5, arrivals=1)(world, [problem()])[0]
    np.testing.assert_allclose(plan.latents[-1], [2.0, -1.0], atol=1e-6)
    assert (plan.source, plan.iterations) == ("proposal", 0)
    assert plan.costs == {"proposal": plan.cost}
    assert world.calls == [1] * 5  # four to grow the plan, one for its latents


@pytest.mark.parametrize("name", BOTH)
def test_proposals_begin_with_what_is_committed_and_go_on_from_where_it_leads(name):
    committed = np.array([[-1.0, 0.5], [0.25, 0.0]])
    planner = planners.make(name, samples=4, reach=5, arrivals=1)
    plan = planner(ProposingWorld(spread=0.1), [problem(committed=committed), problem()])[0]
    for actions in (plan.actions[None], plan.elites, plan.candidates):
        np.testing.assert_array_equal(actions[:, 0, :4], np.tile(committed.ravel(), (len(actions), 1)))
    assert np.linalg.norm(plan.latents[-1] - [2.0, -1.0]) < 0.01


def test_of_several_times_of_arrival_the_best_by_predicted_cost_is_taken():
    sum_of_distances = planners.make("propose", cost="sum", reach=8, arrivals=4)
    plan = sum_of_distances(ProposingWorld(), [problem(goal=(0.5, 0.0))])[0]
    assert plan.distances[0] < 1e-9  # arriving after one block costs least
    assert plan.cost == min(plan.costs.values())


@pytest.mark.parametrize(
    ("reach", "arrivals", "times"), [(10, 5, [1, 2, 3, 6, 10]), (5, 1, [5]), (5, 9, [1, 2, 3, 4, 5]), (1, 3, [1])]
)
def test_times_of_arrival_lie_between_one_block_and_the_reach(reach, arrivals, times):
    assert planners.make("propose", reach=reach, arrivals=arrivals).times().tolist() == times


def test_the_blocks_left_count_down_to_one():
    asked = []

    class Asked(ProposingWorld):
        def propose(self, latents, goals, blocks_left):
            asked.append(blocks_left[:, 0].tolist())
            return super().propose(latents, goals, blocks_left)

    roll(Asked(), [problem()], 5, np.array([2.0, 4.0]), samples=1)
    assert asked == [[2, 4, 2], [1, 3, 1], [1, 2, 1], [1, 1, 1], [1, 1, 1]]


def test_samples_follow_the_weights_and_the_spreads():
    rng, count = np.random.default_rng(0), 4000
    weights = np.broadcast_to([0.25, 0.75], (1, count, 2))
    means = np.broadcast_to([[-5.0], [5.0]], (1, count, 2, 1))
    spreads = np.broadcast_to([[0.5], [2.0]], (1, count, 2, 1))
    drawn = pick(weights, means, spreads, rng.random((1, count)), rng.standard_normal((1, count, 1)))[0, :, 0]
    first, second = drawn[drawn < -2], drawn[drawn > -2]
    assert len(first) / count == pytest.approx(0.25, abs=0.03)
    assert (first.std(), second.std()) == (pytest.approx(0.5, rel=0.1), pytest.approx(2.0, rel=0.1))
    plain = pick(weights, means, spreads, np.empty((1, 0)), np.empty((1, 0, 1)))
    assert (plain == 5).all()  # the likeliest mean


# ---- the guard -------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    skill=st.floats(-1, 2),
    spread=st.floats(0, 1),
    goal=st.tuples(st.floats(-6, 6), st.floats(-6, 6)),
    cost=st.sampled_from(["terminal", "min", "sum"]),
    seed=st.integers(0, 99),
)
def test_the_worse_of_proposal_and_search_is_never_carried_out(skill, spread, goal, cost, seed):
    world = ProposingWorld(skill=skill, spread=spread)
    guided = planners.make("guided", cost=cost, candidates=24, elites=6, iterations=2)
    plan = guided(world, [problem(goal, seed)])[0]
    assert set(plan.costs) == {"proposal", "search"}
    assert plan.cost == min(plan.costs.values()) == plan.costs[plan.source]
    proposed = planners.make("propose", cost=cost)(world, [problem(goal, seed)])[0]
    assert plan.costs["proposal"] == pytest.approx(proposed.cost, rel=1e-5, abs=1e-9)
    assert plan.cost <= proposed.cost + 1e-9


def test_perfect_proposals_are_kept_and_bad_ones_are_searched_around():
    perfect, bad = (planners.make("guided")(ProposingWorld(skill=s), [problem()])[0] for s in (1.0, -1.0))
    assert (perfect.source, bad.source) == ("proposal", "search")
    assert bad.costs["search"] < bad.costs["proposal"]


def test_a_guided_search_comes_nearer_than_a_blind_one_of_the_same_size():
    world, size = ProposingWorld(skill=0.7, spread=0.1), {"iterations": 2, "candidates": 60, "cost": "terminal"}
    guided, blind = planners.make("guided", **size, reach=6, arrivals=1), planners.make("cem", **size, answer="best")
    far = [problem((4.5, -4.5), seed) for seed in range(5)]  # all but the farthest that actions in the box can reach
    assert max(plan.costs["search"] for plan in guided(world, far)) < min(plan.cost for plan in blind(world, far))


def test_the_first_candidates_lie_around_the_guesses():
    guess = np.full((1, 5, 10), 0.5, np.float32)
    planner = planners.make("cem", iterations=1, candidates=200, std=0.2)
    plan = planner(PointWorld(std=0.1), [problem(guesses=guess)])[0]
    centres = plan.candidates.mean(axis=(1, 2))
    assert np.isclose(centres, 0.5, atol=0.1).sum() == np.isclose(centres, 0.0, atol=0.1).sum() == 100


# ---- what every planner promises -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
@settings(max_examples=10, deadline=None)
@given(box=st.floats(0.05, 2.0), goal=st.tuples(st.floats(-50, 50), st.floats(-50, 50)), seed=st.integers(0, 99))
def test_no_plan_leaves_the_box(name, box, goal, seed):
    world = ProposingWorld(box=box, std=1.5, spread=0.5)
    plan = planners.make(name, samples=4)(world, [problem(goal, seed)])[0]
    for actions in (plan.actions, plan.elites, plan.candidates):
        assert np.abs(actions).max() <= np.float32(box)


@pytest.mark.parametrize("name", BOTH)
def test_problems_solved_together_get_the_plans_that_they_get_alone(name):
    planner, world = planners.make(name, samples=3), ProposingWorld(skill=0.6, spread=0.2)
    goals = [(2.0, -1.0), (0.0, 3.0), (-9.0, 0.0)]
    together = planner(world, [problem(goal, seed) for seed, goal in enumerate(goals)])
    for seed, goal in enumerate(goals):
        assert_same_plan(together[seed], planner(world, [problem(goal, seed)])[0])


@pytest.mark.parametrize("name", BOTH)
def test_plans_with_a_file_do_not_depend_on_what_is_planned_beside_them(name, tmp_path):
    from agent.world_models.onnx import OnnxWorldModel

    model = OnnxWorldModel(tiny.file(tmp_path, components=3), device="cpu", threads=2)
    planner = planners.make(name, horizon=4)

    def given(seed):
        start, goal = np.random.default_rng(seed).standard_normal((2, 8)).astype(np.float32)
        return Problem(start[None], np.empty((0, 10), np.float32), goal, np.random.default_rng(seed))

    together = planner(model, [given(seed) for seed in range(3)])
    for seed in range(3):
        assert_same_plan(together[seed], planner(model, [given(seed)])[0])


@pytest.mark.parametrize("name", BOTH)
def test_the_same_generator_gives_the_same_plan(name):
    planner, world = planners.make(name), ProposingWorld(skill=0.3, spread=0.3)
    first, again = (planner(world, [problem(seed=3)])[0] for _ in range(2))
    assert_same_plan(first, again)


def test_a_guided_plan_keeps_to_its_deadline():
    world, slow_s = ProposingWorld(slow_s=0.03), 0.03
    started = time.perf_counter()
    plan = planners.make("guided", iterations=1000)(world, [problem()], deadline=started + 8 * slow_s)[0]
    assert time.perf_counter() - started < (8 + 2) * slow_s + 0.2
    assert 1 <= plan.iterations <= 5
    assert plan.ms["total"] == pytest.approx(plan.ms["propose"] + plan.ms["search"] + plan.ms["rollout"])


@pytest.mark.parametrize("name", BOTH)
def test_a_deadline_in_the_past_still_gives_a_plan(name):
    assert planners.make(name)(ProposingWorld(), [problem()], deadline=0.0)[0].actions.shape == (5, 10)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"reach": 0}, "reach of the planner must be at least 1, got 0"),
        ({"arrivals": 0}, "arrivals of the planner must be at least 1, got 0"),
        ({"samples": -1}, "samples of the planner must be at least 0, got -1"),
        ({"reach": 2.5}, "reach of the planner is a whole number, got 2.5"),
    ],
)
def test_wrong_settings_are_answered_in_one_sentence(wrong, sentence):
    for name in BOTH:
        with pytest.raises(ValueError, match=sentence):
            planners.make(name, **wrong)


# ---- at work ---------------------------------------------------------------------------------------------------------


def plans_at(**setting):
    task = envs.make("two-room")
    agent = ModelAgent(ProposingRoomWorld(task), planners.make("propose", **setting))
    steps = Episode(task, agent, np.array([60.0, 60.0]), np.array([80.0, 160.0]), steps=12)
    return [step.step for step in steps if step.new_plan]


def test_proposals_may_be_made_at_every_step():
    assert plans_at() == [0, 5, 10]
    assert plans_at(every_step=True) == list(range(12))


def test_a_planner_that_needs_proposals_refuses_a_model_without_them(tmp_path):
    for name in BOTH:
        with pytest.raises(BadInput, match=f"planner {name} needs a model with proposals"):
            ModelAgent(PointWorld(), planners.make(name))
    assert issubclass(type(planners.make("guided")), ProposingPlanner)


@pytest.mark.parametrize("command", [["play.py", "--headless"], ["-m", "agent.evaluate", "--out", "out"]])
def test_a_file_without_proposals_is_one_sentence_and_status_2(command, tmp_path):
    words = ["--env", "two-room", "--model", str(tiny.file(tmp_path)), "--planner", "propose"]
    line = [sys.executable, *command, *words]
    line[1] = str(ROOT / "play.py") if line[1] == "play.py" else line[1]
    done = subprocess.run(
        line, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error: planner propose needs a model with proposals: choose another, or train them with "
        "`python -m training.train --phases proposals` and export again\n"
    )
