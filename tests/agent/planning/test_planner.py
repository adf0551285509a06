"""Planners find known optima, stay in the box, keep to their deadline and do not depend on their neighbours."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent import planning as planners
from agent.planning.base import Problem
from agent.planning.search_space import SearchSpace
from tests.analytic_world import PointWorld

EVERY = ["cem", "lewm", "mppi", "shooting"]
SEARCHES = ["cem", "lewm", "mppi"]


def problem(goal=(2.0, -1.0), seed=0, start=(0.0, 0.0), **more):
    return Problem(np.array([start]), np.empty((0, 10)), np.array(goal), np.random.default_rng(seed), **more)


def assert_same_plan(one, other):
    for part in ("actions", "latents", "distances", "elites", "candidates"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert (one.cost, one.iterations) == (other.cost, other.iterations)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_goal_in_reach_is_reached(name):
    plan = planners.make(name)(PointWorld(), [problem()])[0]
    assert np.linalg.norm(plan.latents[-1] - [2.0, -1.0]) < 0.1


@pytest.mark.parametrize("name", EVERY)
def test_every_candidate_begins_with_what_is_committed_and_the_rest_makes_up_for_it(name):
    committed = np.array([[-1.0, 0.5], [0.25, 0.0]])
    plan = planners.make(name, iterations=3)(PointWorld(), [problem(committed=committed), problem()])[0]
    for actions in (plan.actions[None], plan.elites, plan.candidates):
        np.testing.assert_array_equal(actions[:, 0, :4], np.tile(committed.ravel(), (len(actions), 1)))
    assert np.linalg.norm(plan.latents[-1] - [2.0, -1.0]) < 0.5


@pytest.mark.parametrize("name", SEARCHES)
def test_towards_a_goal_out_of_reach_every_action_is_at_the_edge_of_the_box(name):
    plan = planners.make(name, iterations=40)(PointWorld(), [problem(goal=(100.0, 0.0))])[0]
    assert plan.actions.reshape(-1, 2)[:, 0].min() > 0.9
    assert plan.latents[-1, 0] == pytest.approx(5.0, abs=0.1)  # 25 actions of gain 0.2


def test_random_shooting_answers_with_the_best_candidate_that_it_tried():
    world = PointWorld()
    plan = planners.make("shooting", iterations=1)(world, [problem()])[0]
    tried = world.rollout(np.zeros((1, 1, 2)), np.empty((1, 0, 10)), plan.candidates)[:, -1]
    assert plan.cost == np.square(tried - [2.0, -1.0]).sum(axis=1).min()


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=10, deadline=None)
@given(box=st.floats(0.05, 2.0), goal=st.tuples(st.floats(-50, 50), st.floats(-50, 50)), seed=st.integers(0, 99))
def test_no_candidate_leaves_the_box(name, box, goal, seed):
    world = PointWorld(box=box, std=1.5)
    plan = planners.make(name, iterations=3)(world, [problem(goal, seed)])[0]
    for actions in (plan.actions, plan.elites, plan.candidates):
        assert np.abs(actions).max() <= np.float32(box)


@pytest.mark.parametrize("name", EVERY)
def test_problems_solved_together_get_the_plans_that_they_get_alone(name):
    planner = planners.make(name, iterations=4)
    goals = [(2.0, -1.0), (0.0, 3.0), (-9.0, 0.0)]
    together = planner(PointWorld(), [problem(goal, seed) for seed, goal in enumerate(goals)])
    for seed, goal in enumerate(goals):
        assert_same_plan(together[seed], planner(PointWorld(), [problem(goal, seed)])[0])


def test_problems_solved_together_share_their_rollouts_even_when_one_stops_early():
    world = PointWorld()
    planner = planners.make("cem", iterations=30, agree=0.2)
    lazy, busy = planner(world, [problem((0.5, 0.5), 1), problem((100.0, 0.0), 0)])
    assert lazy.iterations != busy.iterations
    assert len(world.calls) == max(lazy.iterations, busy.iterations) + 1
    assert max(world.calls) == 2 * planner.candidates


@pytest.mark.parametrize("name", EVERY)
def test_the_same_generator_gives_the_same_plan_and_another_gives_another(name):
    planner = planners.make(name)
    first, again, other = (planner(PointWorld(), [problem(seed=seed)])[0] for seed in (3, 3, 4))
    assert_same_plan(first, again)
    assert not np.array_equal(first.actions, other.actions)


def test_the_published_preset_is_the_published_algorithm():
    """Written out once more, plainly: 300 candidates, 30 elites, 30 iterations, first candidate = mean."""
    world, goal = PointWorld(box=np.inf, std=0.5), np.array([2.0, -1.0])
    rng = np.random.default_rng(7)
    mean, std = np.zeros((5, 10)), np.ones((5, 10))
    for _ in range(30):
        candidates = mean + std * rng.standard_normal((300, 25, 2)).reshape(300, 5, 10)
        candidates[0] = mean
        latents = world.rollout(np.zeros((1, 1, 2)), np.empty((1, 0, 10)), (0.5 * candidates).astype(np.float32))
        elites = candidates[np.argsort(np.square(latents[:, -1] - goal).sum(axis=1), kind="stable")[:30]]
        mean, std = elites.mean(axis=0), elites.std(axis=0, ddof=1)

    plan = planners.make("lewm")(world, [problem(seed=7)])[0]

    np.testing.assert_array_equal(plan.actions, (0.5 * mean).astype(np.float32))
    assert planners.make("lewm").replan == plan.actions.shape[0] == 5


@pytest.mark.parametrize(("cost", "expected"), [("terminal", 4.0), ("min", 1.0), ("sum", 14.0)])
def test_costs_count_the_end_the_nearest_point_or_the_whole_way(cost, expected):
    from agent.planning.rollouts import reduce

    assert reduce(np.array([[9.0, 1.0, 4.0]]), cost) == [expected]


def test_the_minimum_cost_is_content_to_pass_through_the_goal():
    plan = planners.make("cem", cost="min")(PointWorld(), [problem((1.0, 0.0))])[0]
    assert plan.cost == plan.distances.min() < 0.1 < plan.distances[-1]


def test_the_first_guess_of_a_warm_start_is_what_is_left_of_the_last_plan():
    space = SearchSpace.of(PointWorld(), blocks=5)
    leftover = np.full((3, 10), 0.25, np.float32)
    start = space.actions(space.start(leftover))
    np.testing.assert_array_equal(start[:3], leftover)
    np.testing.assert_array_equal(start[3:], 0)


def test_a_warm_start_that_is_already_right_is_kept():
    """A single iteration cannot find the plan by itself; from the answer it cannot do worse than the answer."""
    right = planners.make("cem", iterations=30)(PointWorld(), [problem()])[0]
    one = planners.make("cem", iterations=1, answer="best")
    cold, warm = (one(PointWorld(), [problem(warm_start=start)])[0] for start in (None, right.actions))
    assert warm.cost <= right.cost < cold.cost


@pytest.mark.parametrize("name", EVERY)
def test_planning_stops_within_one_iteration_of_its_deadline(name):
    slow_s = 0.05
    world = PointWorld(slow_s=slow_s)
    started = time.perf_counter()
    plan = planners.make(name, iterations=1000)(world, [problem()], deadline=started + 5 * slow_s)[0]
    assert time.perf_counter() - started < (5 + 1 + 1) * slow_s + 0.1  # one iteration, and the answer's own rollout
    assert 1 <= plan.iterations <= 6


@pytest.mark.parametrize("name", EVERY)
def test_a_deadline_in_the_past_still_gives_a_plan(name):
    plan = planners.make(name)(PointWorld(), [problem()], deadline=0.0)[0]
    assert plan.iterations == 1
    assert plan.actions.shape == (5, 10)


def test_elites_that_agree_stop_the_search():
    patient, content = (planners.make("cem", iterations=50, agree=agree) for agree in (0.0, 0.3))
    assert patient(PointWorld(), [problem()])[0].iterations == 50
    assert content(PointWorld(), [problem()])[0].iterations < 20


def test_the_spread_never_falls_below_its_floor():
    shrunk, floored = (planners.make("cem", iterations=60, std_floor=floor) for floor in (0.0, 0.5))
    spreads = [plan(PointWorld(), [problem()])[0].candidates[1:].std(axis=0) / 0.5 for plan in (shrunk, floored)]
    assert spreads[0].max() < 0.1
    assert spreads[1].min() > 0.35  # a sample of candidates clamped at the box varies a little less than 0.5


def test_each_iteration_has_a_share_of_the_last_ones_candidates():
    world = PointWorld()
    planners.make("cem", candidates=80, decay=0.5, elites=8, iterations=5)(world, [problem()])
    assert world.calls == [80, 40, 20, 16, 16, 1]  # never less than twice the elites; then the answer itself


def test_the_best_answer_is_the_better_of_mean_and_best_elite():
    mean, best = (
        planners.make("cem", iterations=2, answer=answer)(PointWorld(), [problem()])[0] for answer in ("mean", "best")
    )
    assert best.cost <= mean.cost
    assert best.candidates.shape == mean.candidates.shape


def test_a_narrow_warm_start_searches_near_the_last_plan_and_widely_beyond_it():
    leftover = np.zeros((3, 10), np.float32)
    planner = planners.make("cem", iterations=1, std_warm=0.1, candidates=400)
    spread = planner(PointWorld(std=0.2), [problem(warm_start=leftover)])[0].candidates.std(axis=0) / 0.2
    np.testing.assert_allclose(spread[:3], 0.1, atol=0.03)
    np.testing.assert_allclose(spread[3:], 1.0, atol=0.2)


def test_kept_elites_mean_that_the_best_cost_never_rises():
    best = []
    for iterations in range(1, 12):
        planner = planners.make("cem", iterations=iterations, keep=5, answer="best", std_floor=0.5)
        best.append(planner(PointWorld(), [problem()])[0].cost)
    assert best == sorted(best, reverse=True)
    assert best[0] > best[-1]


@pytest.mark.parametrize("colour", [0.0, 1.0, 2.0])
def test_coloured_noise_has_variance_one_and_wanders_the_more_the_redder(colour):
    space = SearchSpace.of(PointWorld(), blocks=5)
    noise = space.noise(np.random.default_rng(0), 20_000, colour).reshape(20_000, 25, 2)
    assert noise.var() == pytest.approx(1.0, abs=0.02)
    neighbours = np.mean(noise[:, 1:] * noise[:, :-1])
    assert neighbours == pytest.approx({0.0: 0.0, 1.0: 0.5, 2.0: 0.85}[colour], abs=0.12)


def test_a_plan_says_how_long_its_phases_took():
    ms = planners.make("cem", iterations=3)(PointWorld(slow_s=0.01), [problem()])[0].ms
    assert ms["rollout"] > 30
    assert ms["search"] + ms["rollout"] == pytest.approx(ms["total"])


def test_latents_that_are_not_numbers_are_an_error_and_no_plan():
    world = PointWorld(gain=np.nan)
    with pytest.raises(FloatingPointError, match="not finite"):
        planners.make("cem")(world, [problem()])


@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("magic", {}, "unknown planner 'magic': choose one of cem, guided, lewm, mppi, propose, shooting"),
        ("cem", {"elite": 3}, "planner cem has no setting 'elite'"),
        ("cem", {"candidates": 0}, "candidates of the planner must be at least 1, got 0"),
        ("cem", {"candidates": 2.5}, "candidates of the planner is a whole number, got 2.5"),
        ("cem", {"elites": 101}, "elites must lie between 2 and the 100 candidates, got 101"),
        ("cem", {"momentum": 1.0}, "0 <= momentum < 1"),
        ("cem", {"decay": 0}, "decay must be above 0 and at most 1, got 0"),
        ("cem", {"cost": "mean"}, "cost of the planner is terminal, min or sum"),
        ("cem", {"replan": 6}, "a plan of 5 blocks cannot be carried out for 6"),
        ("mppi", {"temperature": 0}, "temperature above 0"),
    ],
)
def test_wrong_settings_are_answered_in_one_sentence(name, wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        planners.make(name, **wrong)


def test_a_horizon_beyond_the_models_is_answered_in_one_sentence():
    with pytest.raises(ValueError, match="predicts 5 blocks at most, not 6"):
        planners.make("cem", horizon=6)(PointWorld(), [problem()])


def test_a_model_brings_the_settings_that_it_was_tuned_for():
    world = PointWorld()
    world.planner = {"name": "mppi", "candidates": 64}
    assert planners.make_for(world).candidates == 64
    assert planners.make_for(world, assignments=["candidates=32", "cost=min"]).candidates == 32
    assert planners.make_for(world, "cem") == planners.make("cem")
    with pytest.raises(ValueError, match="key=value"):
        planners.make_for(world, assignments=["candidates"])


def test_a_planner_looks_no_further_than_its_model_unless_it_is_told_to():
    near = PointWorld(horizon=3)
    assert (planners.make_for(near, "lewm").horizon, planners.make_for(near, "lewm").replan) == (3, 3)
    assert planners.make_for(near, assignments=["horizon=2"]).horizon == 2
    with pytest.raises(ValueError, match="predicts 3 blocks at most, not 4"):
        planners.make_for(near, assignments=["horizon=4"])
    with pytest.raises(ValueError, match="predicts 3 blocks at most, not 4"):
        planners.make("cem", horizon=4)(near, [problem()])


def test_a_setting_that_is_true_or_false_takes_nothing_else():
    with pytest.raises(ValueError, match="clamp of the planner is true or false, got 'no'"):
        planners.make("lewm", clamp="no")


def test_the_published_planner_says_its_name_and_may_leave_the_box_while_it_searches():
    world = PointWorld(gain=0.02)
    problem = planners.Problem(np.zeros((1, 2)), np.empty((0, 10)), np.full(2, 5.0), np.random.default_rng(0))
    free, clamped = (planners.make("lewm", clamp=clamp, iterations=4)(world, [problem])[0] for clamp in (False, True))

    assert planners.make("lewm").name == "lewm"
    assert np.abs(free.candidates).max() > 1
    assert np.abs(clamped.candidates).max() <= 1
    assert np.abs(free.actions).max() <= 1


@pytest.mark.parametrize(
    "setting", [{"colour": 1e300}, {"std": float("inf")}, {"std": float("nan")}, {"iterations": 10**30}]
)
def test_numbers_that_would_overflow_are_refused(setting):
    with pytest.raises(ValueError, match="must lie within 1e\\+09"):
        planners.make("cem", **setting)
