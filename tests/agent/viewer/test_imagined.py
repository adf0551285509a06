"""What the window says of a plan: where it arrives, how near, in one unit, and how true the picture is."""

import dataclasses
import math

import numpy as np
import pytest

from agent import planning as planners
from agent.episodes.agents import Thought
from agent.planning.base import Problem
from agent.viewer.ghost import Ghost
from agent.viewer.hud_state import HudState, arrival, plotted_distance
from agent.viewer.latent_images import StoredFrames
from agent.viewer.panels.imagined import expectation
from tests.agent.viewer.playing import playback
from tests.analytic_world import PixelRoomWorld, PointWorld


@pytest.fixture
def plan():
    """A plan that comes nearest at its second block and goes away again."""
    problem = Problem(np.zeros((1, 2)), np.empty((0, 10)), np.array([2.0, -1.0]), np.random.default_rng(0))
    found = planners.make("cem", candidates=16, iterations=1)(PointWorld(), [problem])[0]
    return dataclasses.replace(found, distances=np.array([4.0, 0.09, 1.0, 9.0, 63.0]))


@pytest.mark.parametrize(
    ("cost", "block", "words"),
    [("min", 1, "nearest 0.3 at +10"), ("sum", 1, "nearest 0.3 at +10"), ("terminal", 4, "ends at 7.94 at +25")],
)
def test_a_plan_is_shown_at_the_block_that_its_planner_wants_to_arrive_at(plan, cost, block, words):
    costs = {"min": plan.distances.min(), "sum": plan.distances.sum(), "terminal": plan.distances[-1]}
    plan = dataclasses.replace(plan, cost=float(costs[cost]))
    assert arrival(plan) == block
    assert expectation(plan, 5) == words


def test_a_plan_that_is_nearest_at_its_end_says_so(plan):
    plan = dataclasses.replace(plan, distances=np.array([4.0, 1.0]), cost=1.0)
    assert expectation(plan, 5) == "nearest 1 at +10"


def test_a_pictured_frame_tells_how_far_it_is_from_the_latent():
    stored = StoredFrames(PixelRoomWorld(None))
    stored.wait(60)
    wanted = np.array([[60.0, 150.0], [150.0, 60.0]])
    shown = stored.states(wanted)
    known = stored.latents()
    for latent, gap in zip(wanted, shown.gaps, strict=True):
        assert gap == pytest.approx(np.linalg.norm(known - latent, axis=1).min())
    stored.close()


def test_a_latent_far_from_every_stored_frame_is_told_from_others():
    stored = StoredFrames(PixelRoomWorld(None))
    stored.wait(60)
    assert not stored.is_far(np.array([60.0, 150.0]))
    assert stored.is_far(np.array([500.0, 500.0]))
    stored.close()


def test_steps_before_the_first_plan_have_no_latent_distance():
    record = next(iter(playback(steps=2, episodes=1).sequence))
    waiting = Thought(goal_latent=record.thought.goal_latent)
    assert plotted_distance(dataclasses.replace(record, thought=waiting)) is None
    assert plotted_distance(dataclasses.replace(record, thought=Thought())) == record.distance
    assert plotted_distance(record) == pytest.approx(math.sqrt(record.thought.latent_distance))


def test_against_the_clock_the_chart_begins_with_the_first_latent():
    run = playback(model="tests.analytic_world:RoomWorld", episodes=1, steps=12, realtime=True)
    hud = HudState(2)
    for record in run.sequence:
        hud.add(record)
        run.renderer.draw(hud, run.view)
    assert hud.marks[0].distance is None
    assert hud.marks[-1].distance == pytest.approx(math.sqrt(record.thought.latent_distance))
    run.close()


def test_times_and_success_belong_to_the_planner_that_made_the_plans():
    run = playback(episodes=4, steps=6)
    hud, other = HudState(2), planners.make("shooting", candidates=8, iterations=1)
    own = run.sequence.agent.planner
    for record in run.sequence:
        hud.add(record)
        if (record.pair, record.step) == (1, 3):
            run.sequence.set_planner(other, None)
    rates = dict(hud.rates)
    assert {planner: rate.n for planner, rate in rates.items()} == {own: 1, other: 2}  # not the pair with both
    assert list(hud.results) == [2, 3]
    assert hud.planner == other
    assert sum(len(times) for times in hud._plan_ms.values()) == 8
    assert len(hud._plan_ms[other]) == 5


def test_the_past_of_an_episode_is_as_it_was():
    run = playback(episodes=1, steps=12)
    hud, marks, predictions = HudState(2), [], []
    for record in run.sequence:
        hud.add(record)
        marks.append(list(hud.marks))
        predictions.append(len(hud.predictions))
    for step in (0, 4, 7, 12):
        past = hud.as_of(step)
        assert past.record.step == step
        assert past.marks == marks[step]
        assert len(past.predictions) == predictions[step]


def test_the_ghost_outlines_the_block_and_the_agent_of_the_goal_not_the_green_t():
    run = playback(task="pusht", rule="zero", steps=1, episodes=1)
    goal = np.array([100.0, 400.0, 380.0, 120.0, 0.0, 0.0, 0.0])
    outlines = Ghost(run.renderer.task, run.renderer.picture).outlines(goal)
    middles = sorted((outline.min(axis=0) + outline.max(axis=0)).round(1).tolist() for outline in outlines)
    assert middles == [[0.4, 1.6], [1.5, 0.7]]  # twice the middle: of the agent, and of the T 120 px high
    run.close()
