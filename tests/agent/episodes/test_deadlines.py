"""Time for a plan: kept where it can be, and said where it cannot."""

import time
import warnings

import numpy as np
import pytest

import envs
from agent import planning as planners
from agent.episodes.agents import ModelAgent
from agent.episodes.episode import Episode, together
from agent.episodes.outcome import Outcome
from agent.episodes.realtime import RealtimeAgent, realtime
from agent.planning.base import Problem
from tests.analytic_world import PointWorld, ProposingWorld

START, GOAL = [50.0, 60.0], [90.0, 160.0]


@pytest.fixture(scope="module")
def task():
    return envs.make("two-room")


def planner(name="cem", **settings):
    return planners.make(name, candidates=16, cost="sum", **settings)


def line_of(task, agent, steps=12):
    outcome = Outcome()
    for step in Episode(task, agent, START, GOAL, steps=steps):
        outcome.add(step)
    return outcome.line(agent)


def test_plans_that_take_too_long_are_counted_in_lockstep_too(task):
    agent = ModelAgent(PointWorld(gain=5.0, slow_s=0.02), planner(), plan_ms=5)
    with pytest.warns(UserWarning, match="planner cem cannot make a plan in 5 ms: on this machine its shortest plan"):
        line = line_of(task, agent)
    assert line["misses"] == line["plans"] == 3
    assert 40 <= line["plan_floor_ms"] < 400  # an iteration and the answer


def test_the_warning_comes_once(task):
    agent = ModelAgent(PointWorld(gain=5.0, slow_s=0.02), planner(), plan_ms=5)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        line_of(task, agent)
        assert line_of(task, agent)["misses"] == 3  # of the second episode alone
    assert len(said) == 1


def test_plans_that_are_made_together_miss_together(task):
    world, made = PointWorld(gain=5.0, slow_s=0.02), planner()
    agents = [ModelAgent(world, made, plan_ms=5) for _ in range(2)]
    episodes = [Episode(task, agent, START, GOAL, pair=pair, steps=6) for pair, agent in enumerate(agents)]
    with pytest.warns(UserWarning, match="shortest plan"):
        *_, last = together(episodes)
    assert [record.misses for record in last] == [2, 2]


def test_time_enough_is_not_missed_and_nothing_is_said(task):
    agent = ModelAgent(PointWorld(gain=5.0), planner(), plan_ms=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line = line_of(task, agent)
    assert (line["misses"], line["plan_floor_ms"]) == (0, None)


def test_another_planner_has_its_own_floor(task):
    agent = ModelAgent(PointWorld(gain=5.0, slow_s=0.02), planner(), plan_ms=5)
    with pytest.warns(UserWarning, match="planner cem"):
        line_of(task, agent)
    agent.use(planner("shooting"), 5)
    assert agent.floor_ms is None
    with pytest.warns(UserWarning, match="planner shooting"):
        line_of(task, agent)


def test_against_the_clock_it_is_said_too(task):
    agent = RealtimeAgent(PointWorld(gain=5.0, slow_s=0.02), planner(iterations=2), plan_ms=5)
    with pytest.warns(UserWarning, match="cannot make a plan in 5 ms"):
        list(realtime(Episode(task, agent, START, GOAL, steps=5)))


class SlowWorld(ProposingWorld):
    """Takes its time for every plan that it rolls out."""

    def rollout(self, context, past_actions, actions):
        time.sleep(2e-4 * actions.shape[0] * actions.shape[1])
        return super().rollout(context, past_actions, actions)


def test_a_guided_plan_falls_back_to_its_proposals_where_a_search_never_fits():
    world, guided = SlowWorld(), planners.make("guided", candidates=200, samples=32)

    def plan(ms):
        problem = Problem(np.zeros((1, 2)), np.empty((0, 10)), np.array([2.0, -1.0]), np.random.default_rng(0))
        started = time.perf_counter()
        made = guided(world, [problem], started + ms / 1e3)[0]
        return made, 1e3 * (time.perf_counter() - started)

    first, ms = plan(120)
    assert first.iterations == 1  # nobody knows better
    assert ms > 200
    fallen, ms = plan(120)
    assert (fallen.source, fallen.iterations) == ("proposal", 0)
    assert ms < 120
    assert plan(3000)[0].iterations >= 1


def test_without_a_deadline_a_guided_plan_is_always_searched_for():
    world, guided = SlowWorld(), planners.make("guided", candidates=20, iterations=2)
    for _ in range(2):
        problem = Problem(np.zeros((1, 2)), np.empty((0, 10)), np.array([2.0, -1.0]), np.random.default_rng(0))
        assert guided(world, [problem])[0].iterations == 2
