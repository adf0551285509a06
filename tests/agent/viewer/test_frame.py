"""Whole frames against stored ones, and the words in them."""

import dataclasses
import itertools
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pytest

from agent import planning as planners
from agent.planning.base import Problem
from agent.viewer.frame import HEIGHT, WIDTH, View
from agent.viewer.panels.chart import nice_ceiling
from agent.viewer.panels.facts import chosen
from tests.agent.viewer.playing import playback
from tests.analytic_world import PointWorld, ProposingWorld

STORED = Path(__file__).parents[2] / "stored"


def frame(task, view=View(), **settings):  # noqa: B008  (a View is frozen)
    """The frame at step 7, with all milliseconds made up."""
    run, plans = playback(task=task, **settings), {}
    for record in itertools.islice(run.sequence, 8):
        run.show([calm(record, plans)], view)
    run.close()
    return run.canvas.pixels


def calm(record, plans):
    """The record with all milliseconds made up; `plans` keeps what each plan became, as one is used for many steps."""
    thought = record.thought
    if thought.plan is not None:
        ms = {"search": 10.0, "rollout": 30.0, "encode": 2.0, "total": 40.0}
        plan, _ = plans.setdefault(id(thought.plan), (dataclasses.replace(thought.plan, ms=ms), thought.plan))
        thought = dataclasses.replace(thought, plan=plan)
    return dataclasses.replace(record, plan_ms=record.plan_ms and 42.0, thought=thought)


def unlike(picture, stored):
    """The share of pixels that differ by more than rounding and fonts explain."""
    return float((np.abs(picture.astype(int) - stored.astype(int)).max(axis=-1) > 48).mean())


@pytest.mark.parametrize("task", ["two-room", "pusht"])
def test_a_frame_is_like_the_stored_one(task):
    stored = imageio.imread(STORED / f"frame-{task}.png")
    assert unlike(frame(task), stored) < 0.005


def test_another_frame_is_not_like_the_stored_one():
    stored = imageio.imread(STORED / "frame-two-room.png")
    assert unlike(frame("two-room", View(candidates=False, imagined=True)), stored) > 0.005
    assert unlike(frame("two-room", seed=1), stored) > 0.005


def test_the_same_records_give_the_same_frame():
    np.testing.assert_array_equal(frame("two-room"), frame("two-room"))


def test_a_rule_has_a_frame_without_latents_and_plans():
    assert frame("two-room", rule="expert").shape == (HEIGHT, WIDTH, 3)


def test_the_window_says_what_the_actions_come_from_and_what_the_guard_compared():
    def plan(name, world):
        problem = Problem(np.zeros((1, 2)), np.empty((0, 10)), np.array([2.0, -1.0]), np.random.default_rng(0))
        return planners.make(name)(world, [problem])[0]

    assert chosen(None) == "-"
    assert chosen(plan("cem", PointWorld())).startswith("search ")
    assert chosen(plan("propose", ProposingWorld())).startswith("proposal ")
    guarded = plan("guided", ProposingWorld(skill=-1))
    search, proposal = np.sqrt([guarded.cost, guarded.costs["proposal"]])  # Euclidean, as everywhere in the window
    assert chosen(guarded) == f"search {search:.3g}, not proposal {proposal:.3g}"


@pytest.mark.parametrize(("value", "ceiling"), [(0.0, 1.0), (7.3, 8.0), (0.021, 0.03), (101.0, 150.0), (2.0, 2.0)])
def test_axes_end_at_round_numbers(value, ceiling):
    assert nice_ceiling(value) == pytest.approx(ceiling)


def store():
    """Draw the stored frames again: python -m tests.agent.viewer.test_frame"""
    for task in ("two-room", "pusht"):
        imageio.imwrite(STORED / f"frame-{task}.png", frame(task))


if __name__ == "__main__":
    store()
