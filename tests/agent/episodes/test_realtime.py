"""Against the clock: the world never waits, plans are made for their start, a dead planner ends the episode."""

import time

import numpy as np
import pytest

from agent import planning as planners
from agent.episodes.baselines import RuleAgent
from agent.episodes.episode import Episode
from agent.episodes.planner_thread import PlannerThread, Request, plan_ahead
from agent.episodes.realtime import RealtimeAgent, realtime
from envs.two_room import TwoRoom
from tests.analytic_world import PointWorld

HZ = 50.0
START, GOAL = [50.0, 60.0], [90.0, 160.0]


class FastRoom(TwoRoom):
    """Two-Room at 50 steps a second, so that nobody waits long."""

    control_hz = HZ


@pytest.fixture(scope="module")
def task():
    return FastRoom()


def planner(**settings):
    return planners.make("cem", **({"candidates": 32, "iterations": 3, "elites": 6, "cost": "sum"} | settings))


class Replanning:
    """What an agent asks of a planner, apart from plans."""

    horizon, replan, context = 5, 1, 1
    every_step, needs_proposals = False, False


def run(task, agent, **more):
    return list(realtime(Episode(task, agent, START, GOAL, **more)))


def room_world(**more):
    return PointWorld(gain=5.0, **more)


def test_a_quick_planner_reaches_the_goal_in_real_time(task):
    started = time.perf_counter()
    records = run(task, RealtimeAgent(room_world(), planner()))
    assert records[-1].first_hit is not None
    assert 50 / HZ <= time.perf_counter() - started < 50 / HZ + 1
    assert [record.step for record in records] == list(range(51))


def test_the_world_keeps_its_rate_however_slow_the_planner_is(task):
    started = time.perf_counter()
    records = run(task, RealtimeAgent(room_world(slow_s=0.1), planner(iterations=30)), steps=30)
    assert time.perf_counter() - started < 30 / HZ + 1  # a plan alone would take 3 s
    assert len(records) == 31


def test_until_its_first_plan_is_ready_the_agent_does_nothing(task):
    records = run(task, RealtimeAgent(room_world(), planner()), steps=15)
    first = next(record.step for record in records if record.new_plan)
    assert 1 <= first <= 5
    for record in records[:first]:
        np.testing.assert_array_equal(record.action, 0)
        assert record.thought.plan is None
    assert np.abs(records[first].action).max() > 0


def test_plans_are_asked_for_as_often_as_in_lockstep(task):
    records = run(task, RealtimeAgent(room_world(), planner(replan=2)), steps=40)
    assert [record.thought.planned_at for record in records if record.new_plan] == [0, 10, 20, 30]


def test_actions_are_those_of_the_plan_in_force(task):
    records = run(task, RealtimeAgent(room_world(), planner()), steps=40)
    planned = [record for record in records[:-1] if record.thought.plan is not None]
    assert len(planned) > 20
    for record in planned:
        expected = record.thought.plan.actions.reshape(-1, 2)[record.step - record.thought.planned_at]
        np.testing.assert_array_equal(record.action, expected)


def test_a_plan_begins_with_what_is_committed():
    """Twelve steps by (5, 0) are on their way: two blocks are foreseen, two actions are the plan's own first ones."""
    world, seen = room_world(history=3), []

    def spy(model, problems, deadline=None):
        seen.extend(problems)
        return planner(context=3)(model, problems, deadline)

    spy.context = 3
    committed = np.tile(np.array([1.0, 0.0], np.float32), (12, 1))
    request = Request(
        step=10,
        seen_at=0.0,
        deadline=time.perf_counter() + 10,
        observations=np.array([[40.0, 60.0], [50.0, 60.0]]),
        past_actions=np.full((1, 10), 0.2, np.float32),
        committed=committed,
        leftover=np.empty((0, 10), np.float32),
        goal=np.array(GOAL),
        rng=np.random.default_rng(0),
    )
    timed = plan_ahead(world, spy, request)

    assert (timed.begin, timed.start) == (20, 22)
    np.testing.assert_array_equal(timed.latent, [50, 60])
    np.testing.assert_array_equal(seen[0].context, [[50, 60], [75, 60], [100, 60]])
    np.testing.assert_array_equal(seen[0].past_actions, committed[:10].reshape(2, 10))
    actions = timed.plan.actions[0].reshape(5, 2)
    np.testing.assert_array_equal(actions[:2], committed[10:])
    np.testing.assert_allclose(timed.plan.latents[0] - [100, 60], 5 * actions.sum(axis=0), rtol=1e-6)


def test_the_episode_is_where_each_plan_expected_it_to_be(task):
    """Though a plan is carried out later than it was asked for, what happens until then is part of it."""
    records = run(task, RealtimeAgent(room_world(), planner()), steps=40)
    compared = 0
    for record in records:
        if record.new_plan and (end := record.thought.planned_at + 5) <= 40:
            np.testing.assert_allclose(records[end].state, record.thought.plan.latents[0], atol=1e-3)
            compared += 1
    assert compared >= 5


def test_a_late_plan_is_missed_and_the_old_one_goes_on(task):
    """Every plan takes two and a half blocks, so the first comes too late; later ones are made for a later start."""

    class Deaf(Replanning):
        def __call__(self, model, problems, deadline=None):
            time.sleep(2.5 * 5 / HZ)
            return planner()(model, problems)

    records = run(task, RealtimeAgent(room_world(), Deaf()), steps=60)
    assert 1 <= records[-1].misses <= 2
    used = [record for record in records if record.new_plan]
    assert used
    assert all(record.plan_ms > 2.4e3 * 5 / HZ for record in used)
    reaction_ms = used[0].clock.reaction_ms
    assert 1e3 * 14 / HZ - 5 < reaction_ms < 1e3 * 25 / HZ  # 2.5 blocks and the margin ahead
    assert used[0].clock.plan_age_ms == pytest.approx(reaction_ms, abs=20)
    after = records[used[0].step + 5]
    assert after.new_plan or after.clock.plan_age_ms > reaction_ms + 1e3 * 4 / HZ


def test_a_plan_that_is_ready_before_its_moment_is_not_missed(task):
    """Plans take much less time than the slow rehearsal made the agent expect."""

    class Hurrying(Replanning):
        plans = 0

        def __call__(self, model, problems, deadline=None):
            self.plans += 1
            time.sleep(0.2 if self.plans <= 2 else 0.03)
            return planner()(model, problems)

    records = run(task, RealtimeAgent(room_world(), Hurrying(), plan_ms=400.0), steps=40)
    first = next(record for record in records if record.new_plan)
    assert first.step >= 10  # expected after 200 ms, ready after 30
    assert records[-1].misses == 0


def test_a_deadline_keeps_an_anytime_planner_in_time(task):
    agent = RealtimeAgent(room_world(slow_s=0.01), planner(iterations=1000))
    records = run(task, agent, steps=50)
    assert records[-1].misses <= 2  # threads may wake up late on a busy machine
    assert sum(record.new_plan for record in records) >= 5


def test_plan_ms_bounds_the_time_of_a_plan(task):
    agent = RealtimeAgent(room_world(slow_s=0.01), planner(iterations=1000), plan_ms=50.0)
    used = [record.plan_ms for record in run(task, agent, steps=40) if record.new_plan]
    assert np.median(used) < 80  # the time of a block is 100 ms


def test_a_planner_that_dies_ends_the_episode_with_its_error(task):
    class Dying(Replanning):
        plans = 0

        def __call__(self, model, problems, deadline=None):
            self.plans += 1
            if self.plans == 3:
                raise ArithmeticError("out of ideas")
            return planner()(model, problems, deadline)

    started = time.perf_counter()
    with pytest.raises(RuntimeError, match="the planner thread died: out of ideas") as caught:
        run(task, RealtimeAgent(room_world(), Dying()), steps=500)
    assert isinstance(caught.value.__cause__, ArithmeticError)
    assert time.perf_counter() - started < 5  # not 500 steps


def test_a_planner_that_hangs_hangs_nothing_else(task, monkeypatch):
    monkeypatch.setattr("agent.episodes.planner_thread.PATIENCE_S", 0.1)

    class Hanging(Replanning):
        def __call__(self, model, problems, deadline=None):
            time.sleep(3)
            return planner()(model, problems, deadline)

    started = time.perf_counter()
    records = run(task, RealtimeAgent(room_world(), Hanging()), steps=20)
    assert time.perf_counter() - started < 2.5
    assert records[-1].misses == 1
    np.testing.assert_array_equal(records[-1].state, START)


def test_a_new_goal_discards_plans_for_the_old_one(task):
    episode = Episode(task, RealtimeAgent(room_world(), planner()), START, GOAL, steps=60)
    for record in realtime(episode):
        if record.step == 20:
            episode.aim(START)
        if record.step == 21:
            assert record.thought.plan is None
    assert record.first_hit is not None


def test_planning_can_be_switched_off_and_on(task):
    agent = RealtimeAgent(room_world(), planner())
    for record in realtime(Episode(task, agent, START, GOAL, steps=50)):
        agent.planning = not 10 <= record.step < 30
        if 11 < record.step < 30:
            np.testing.assert_array_equal(record.action, 0)
    assert record.first_hit is not None


def test_rules_keep_the_clock_too(task):
    started = time.perf_counter()
    records = run(task, RuleAgent("random"), steps=20)
    assert 20 / HZ <= time.perf_counter() - started < 20 / HZ + 1
    assert records[-1].misses == 0


def test_a_slow_reader_delays_the_world_and_the_lag_says_so(task):
    lags = []
    for record in realtime(Episode(task, RuleAgent("zero"), START, GOAL, steps=8)):
        lags.append(record.clock.lag_ms)
        if record.step == 3:
            time.sleep(5 / HZ)
    assert lags[4] >= 3.9e3 / HZ
    assert np.median(lags) < 1e3 / HZ  # not carried along


def test_closing_a_thread_twice_or_unused_is_no_problem():
    thread = PlannerThread(room_world())
    assert thread.idle
    thread.close()
    thread.close()
