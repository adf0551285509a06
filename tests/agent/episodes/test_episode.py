"""Episodes: one record a step, the same whatever runs beside them, plans carried out as planned."""

import dataclasses
import itertools

import numpy as np
import pytest

import envs
from agent import planning as planners
from agent.episodes.agents import ModelAgent
from agent.episodes.baselines import RuleAgent
from agent.episodes.disturbance import Disturbance
from agent.episodes.episode import Episode, together
from agent.world_models.simulator import SimulatorWorldModel
from envs import BadInput
from tests.analytic_world import PointWorld

SMALL = {"candidates": 32, "iterations": 3, "elites": 6, "cost": "sum"}


@pytest.fixture(scope="module")
def task():
    return envs.make("two-room")


@pytest.fixture(scope="module")
def pairs():
    return envs.pairs("two-room", seed=100, n=4)


def model_agent(task, **settings):
    return ModelAgent(SimulatorWorldModel(task), planners.make("cem", **(SMALL | settings)))


def episode(task, agent, pair, number=0, **more):
    return Episode(task, agent, pair.start, pair.goal, seed=100, pair=number, **more)


def assert_same_records(some, others):
    for one, other in zip(some, others, strict=True):
        np.testing.assert_array_equal(one.state, other.state)
        np.testing.assert_array_equal(one.action, other.action)
        assert (one.success, one.distance, one.first_hit) == (other.success, other.distance, other.first_hit)


def test_an_episode_yields_its_start_and_one_record_for_every_step(task, pairs):
    records = list(episode(task, model_agent(task), pairs[0], steps=20))

    assert [record.step for record in records] == list(range(21))
    np.testing.assert_array_equal(records[0].state, pairs[0].start)
    assert records[-1].action is None
    for before, after in itertools.pairwise(records):
        np.testing.assert_array_equal(task.advance(before.state, before.action), after.state)
        assert after.distance == task.distance(after.state, pairs[0].goal)


@pytest.mark.parametrize("replan", [1, 2])
def test_looking_only_when_a_plan_is_due_changes_nothing_but_what_was_seen(task, pairs, replan):
    often = list(episode(task, model_agent(task, replan=replan), pairs[1]))
    seldom = list(episode(task, model_agent(task, replan=replan), pairs[1], look_every=5))

    assert_same_records(often[:-1], seldom[:-1])
    assert seldom[7].thought.plan is not None
    assert seldom[7].thought.latent is seldom[5].thought.latent


def test_planning_with_the_simulator_reaches_the_goal_and_acting_at_random_does_not(task, pairs):
    planned = [list(episode(task, model_agent(task, candidates=64), pair, n))[-1] for n, pair in enumerate(pairs)]
    at_random = [list(episode(task, RuleAgent("random"), pair, n))[-1] for n, pair in enumerate(pairs)]
    assert all(record.first_hit is not None for record in planned)
    assert not all(record.first_hit is not None for record in at_random)


def test_first_hit_is_the_first_step_with_success_and_stays(task):
    records = list(episode_from(task, start=[50, 50], goal=[80, 50], walk=[1, 0]))
    hit = next(record.step for record in records if record.success)
    assert hit == 3  # 15 px of 30 px: less than 16 px away
    assert [record.first_hit for record in records[:3]] == [None] * 3
    assert {record.first_hit for record in records[3:]} == {3}
    assert not records[-1].success  # walked through it


def episode_from(task, start, goal, walk, **more):
    agent = RuleAgent("zero")
    run = Episode(task, agent, start, goal, steps=15, **more)
    agent._policy = lambda state: np.array(walk, np.float32)
    return run


@pytest.mark.parametrize("replan", [1, 2, 5])
def test_plans_are_made_every_so_many_blocks_and_carried_out_in_between(task, pairs, replan):
    records = list(episode(task, model_agent(task, replan=replan), pairs[1], steps=30))
    assert [record.step for record in records if record.new_plan] == list(range(0, 30, 5 * replan))
    for record in records[:-1]:
        carried_out = record.thought.plan.actions.reshape(-1, 2)[record.step - record.thought.planned_at]
        np.testing.assert_array_equal(record.action, carried_out)


def test_the_simulator_predicts_the_latent_that_the_episode_arrives_at(task, pairs):
    records = list(episode(task, model_agent(task, replan=5), pairs[2], steps=25))
    np.testing.assert_array_equal(records[0].thought.plan.latents[-1], records[25].thought.latent)
    assert records[25].thought.latent_distance == records[0].thought.plan.distances[-1]


def test_episodes_run_together_are_the_episodes_run_alone(task, pairs):
    runs = [episode(task, model_agent(task), pair, number) for number, pair in enumerate(pairs)]
    side_by_side = list(zip(*together(runs), strict=True))
    for number, pair in enumerate(pairs):
        assert_same_records(side_by_side[number], episode(task, model_agent(task), pair, number))


def test_the_same_seed_repeats_an_episode_and_another_does_not(task, pairs):
    first, again, other = (list(episode(task, model_agent(task), pairs[0], number, steps=10)) for number in (0, 0, 1))
    assert_same_records(first, again)
    assert any(not np.array_equal(one.action, two.action) for one, two in zip(first, other, strict=True))


@pytest.mark.parametrize("name", ["random", "expert"])
def test_rules_draw_their_randomness_from_seed_and_pair(task, pairs, name):
    first, again = (list(episode(task, RuleAgent(name), pairs[0])) for _ in range(2))
    assert_same_records(first, again)


def spied_episode(task, model, aim_at=None, look_every=1, **settings):
    """The records of an episode, with a new goal after step `aim_at`, and the problems that its planner was given."""
    planner, seen = planners.make("cem", **(SMALL | settings)), []

    class Spy(type(planner)):
        def __call__(self, model, problems, deadline=None):
            seen.extend(problems)
            return super().__call__(model, problems, deadline)

    agent = ModelAgent(model, Spy(**dataclasses.asdict(planner)))
    run, records = Episode(task, agent, [50, 50], [60, 60], steps=20, look_every=look_every), []
    for record in run:
        records.append(record)
        if record.step == aim_at:
            run.aim([70, 90])
    return records, seen


def test_context_is_the_last_latents_a_block_apart_with_the_blocks_between_them(task):
    records, seen = spied_episode(task, PointWorld(history=3), context=3)

    assert [len(problem.context) for problem in seen] == [1, 2, 3, 3]
    np.testing.assert_array_equal(seen[3].context, [records[step].state for step in (5, 10, 15)])
    blocks = np.array([record.action for record in records[5:15]]).reshape(2, 10)
    np.testing.assert_array_equal(seen[3].past_actions, blocks)


def test_what_is_left_of_a_plan_starts_the_next_search(task):
    records, seen = spied_episode(task, PointWorld(), replan=2)
    assert seen[0].warm_start is None
    np.testing.assert_array_equal(seen[1].warm_start, records[0].thought.plan.actions[2:])


def test_a_goal_may_change_in_the_middle(task):
    run = Episode(task, model_agent(task), [50, 60], [50, 100])
    records = []
    for record in run:
        records.append(record)
        if record.step == 12:
            run.aim([90, 160])
    assert records[13].new_plan  # at once, not at the end of the block
    assert records[12].first_hit is not None
    assert records[13].first_hit is None
    assert records[-1].success
    np.testing.assert_array_equal(records[-1].goal, [90, 160])


@pytest.mark.parametrize("step", [10, 12, 14])
def test_a_goal_may_change_where_no_picture_would_be_taken(task, step):
    often, seldom = (spied_episode(task, PointWorld(), step, look_every)[0] for look_every in (1, 5))
    assert_same_records(often, seldom)
    assert [record.step for record in seldom if record.new_plan] == [0, 5, 10, *range(step + 1, 20, 5)]


def test_after_a_new_goal_in_the_middle_of_a_block_the_context_is_what_was_seen(task):
    records, seen = spied_episode(task, PointWorld(history=3), aim_at=11, look_every=5, context=3)
    assert [len(problem.context) for problem in seen] == [1, 2, 3, 1, 2]
    np.testing.assert_array_equal(seen[4].context, [records[step].state for step in (12, 17)])
    blocks = np.array([record.action for record in records[12:17]]).reshape(1, 10)
    np.testing.assert_array_equal(seen[4].past_actions, blocks)


def test_planning_may_be_switched_on_where_no_picture_would_be_taken(task):
    agent = model_agent(task)
    run = Episode(task, agent, [50, 60], [90, 160], look_every=5)
    agent.planning = False
    planned = []
    for record in run:
        agent.planning = record.step >= 6
        planned += [record.step] if record.new_plan else []
    assert planned == list(range(7, 50, 5))


def test_without_planning_the_agent_stands_still_until_it_plans_again(task):
    agent = model_agent(task)
    run = Episode(task, agent, [50, 60], [90, 160])
    agent.planning = False
    for record in run:
        if record.step == 7:
            np.testing.assert_array_equal(record.state, [50, 60])
            agent.planning = True
    assert record.success


def test_a_push_by_hand_shows_in_the_next_record(task):
    run = Episode(task, RuleAgent("zero"), [50, 60], [90, 160], steps=3)
    for record in run:
        if record.step == 1:
            run.push([10, -5])
        expected = [10, -5] if record.step == 2 else None
        np.testing.assert_array_equal(record.pushed, expected)
    np.testing.assert_array_equal(record.state, [60, 55])


@pytest.mark.parametrize("name", ["two-room", "pusht", "reacher"])
def test_pushes_are_seeded_move_the_goal_object_and_leave_it_where_it_can_be(name):
    task = envs.make(name)
    pair = envs.pairs(task, 100, 1)[0]
    runs = [
        list(Episode(task, RuleAgent("zero"), pair.start, pair.goal, 100, 0, disturb=Disturbance(3.0, every=10)))
        for _ in range(2)
    ]
    assert_same_records(*runs)
    pushes = [record.pushed for record in runs[0] if record.pushed is not None]
    assert 2 <= len(pushes) <= 12
    for push in pushes:
        assert 0 < np.linalg.norm(push) <= 3.0 * task.moved_by * 1.001


def test_after_a_push_a_planning_agent_recovers(task, pairs):
    calm, pushed = (
        list(episode(task, model_agent(task, candidates=64), pairs[3], disturb=disturb))
        for disturb in (None, Disturbance(3.0, every=12))
    )
    assert any(record.pushed is not None for record in pushed)
    assert not np.array_equal(calm[-1].state, pushed[-1].state)
    assert pushed[-1].first_hit is not None


def test_a_picture_model_sees_pictures_of_its_size_and_a_rule_draws_none(task, pairs):
    class Pixels(PointWorld):
        sees, image_size = "pixels", 64

        def encode(self, pictures):
            assert pictures.shape[1:] == (64, 64, 3)
            return pictures.mean(axis=(1, 2))[:, :2].astype(np.float64)

    agent = ModelAgent(Pixels(), planners.make("cem", **SMALL))
    record = next(iter(episode(task, agent, pairs[0])))
    np.testing.assert_array_equal(record.observation, task.draw(pairs[0].start))
    assert next(iter(episode(task, RuleAgent("zero"), pairs[0]))).observation is None
    with pytest.raises(BadInput, match="pictures of side 64, the task draws 32"):
        episode(envs.make("two-room", size=32), agent, pairs[0])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda task: RuleAgent("genius"), "unknown agent 'genius': choose one of model, random, zero, expert"),
        (lambda task: model_agent(task, horizon=6), "predicts 5 blocks at most"),
        (lambda task: model_agent(task, context=2), "uses 1 latents of context at most, not 2"),
        (lambda task: Episode(task, RuleAgent("zero"), [50, 50], [1, 2, 3]), "a goal of two-room has 2 numbers"),
        (lambda task: Episode(task, RuleAgent("zero"), [50, 50], [60, 60], steps=0), "at least 1 step"),
        (lambda task: Disturbance(0.0), "strength above 0"),
    ],
)
def test_wrong_input_is_answered_in_one_sentence(task, wrong, sentence):
    with pytest.raises(BadInput, match=sentence):
        wrong(task)
