"""What a person may plan with: every planner as it was tuned, and settings that change while it plays."""

import numpy as np
import pytest

from agent.episodes.agents import ModelAgent
from agent.factory import make_planner
from agent.viewer.planner_choice import PlannerChoice
from tests.agent.viewer.playing import press, record
from tests.analytic_world import PointWorld, ProposingWorld


def choice(model=None, **settings):
    model = model or PointWorld()
    assignments = [f"{name}={value}" for name, value in settings.items()]
    return PlannerChoice(ModelAgent(model, make_planner(model, None, assignments)))


def names(chosen):
    found = []
    for _ in range(8):
        found.append(chosen.planner.name)
        chosen.next_planner()
    return list(dict.fromkeys(found))


def test_all_planners_that_a_model_allows_take_their_turn():
    assert names(choice()) == ["cem", "lewm", "mppi", "shooting"]
    assert names(choice(ProposingWorld())) == ["cem", "guided", "lewm", "mppi", "propose", "shooting"]


def test_planners_of_a_file_have_the_settings_that_were_tuned_for_it():
    model = ProposingWorld(history=2)
    model.task, model.sha256 = "pusht", "0" * 64
    model.planner = {"name": "guided", "candidates": 50}
    chosen = PlannerChoice(ModelAgent(model, make_planner(model, "propose")))
    chosen.next_planner()
    assert (chosen.planner.name, chosen.planner.candidates, chosen.planner.cost) == ("cem", 200, "min")  # the recipe's
    chosen.next_planner()
    assert (chosen.planner.name, chosen.planner.candidates) == ("guided", 50)  # the file's own


@pytest.mark.parametrize(
    ("name", "up", "down"),
    [
        ("candidates", "200", "50"),
        ("iterations", "11", "9"),
        ("horizon", None, "4"),
        ("spread", "1.25", "0.8"),
        ("cost", "min", "sum"),
        ("plan_ms", "no limit", "500"),
    ],
)
def test_a_setting_is_raised_and_lowered(name, up, down):
    for direction, expected in ((True, up), (False, down)):
        chosen = choice()
        chosen.select([known for known, _ in chosen.shown()].index(name))
        if expected is None:
            with pytest.raises(ValueError, match="predicts 5 blocks at most"):
                chosen.change(direction)
        else:
            chosen.change(direction)
            assert dict(chosen.shown())[name] == expected


def test_brackets_and_arrows_change_the_planner_while_it_plays(paused):
    paused.key("]")
    assert paused.view.settings[paused.view.selected] == ("candidates", "16")
    paused.key("ArrowUp")
    paused.key("]")
    paused.key("ArrowDown")
    assert dict(paused.view.settings)["candidates"] == "32"
    for _ in range(6):  # a plan lasts for a block of five steps
        press(paused, "ArrowRight")
    planner = record(paused).thought.planner
    assert (planner.candidates, planner.iterations) == (32, 1)
    paused.key("ArrowDown")
    assert "iterations of the planner must be at least 1" in paused.view.hint
    paused.key("[")
    assert paused.view.selected == 0


def test_the_time_for_a_plan_is_changed_too(paused):
    paused.key("]")
    paused.key("[")
    paused.key("ArrowDown")
    press(paused, "ArrowRight")
    assert paused.sequence.agent.plan_ms == 500


def test_the_left_arrow_looks_back_and_the_right_one_forward_again(paused):
    for _ in range(3):
        press(paused, "ArrowRight")
    newest = record(paused).step
    count = paused.playback.count
    press(paused, "ArrowLeft")
    press(paused, "ArrowLeft")
    assert paused.view.back == newest - 2
    press(paused, "ArrowRight")
    press(paused, "ArrowRight")
    assert paused.view.back is None
    assert paused.playback.count == count  # no step was taken
    press(paused, "ArrowRight")
    assert record(paused).step == newest + 1


def test_a_drag_along_the_top_line_shows_the_episode_so_far(paused):
    for _ in range(4):
        press(paused, "ArrowRight")
    newest, limit = record(paused).step, record(paused).limit
    live = paused.playback.canvas.pixels.copy()
    paused.press(np.array([20.0 + 1100 * 1 / limit, 44.0]))
    assert paused.view.back == 1
    paused.drag(np.array([20.0 + 1100 * 2 / limit, 44.0]))
    paused.release(np.array([20.0 + 1100 * 2 / limit, 44.0]))
    assert paused.view.back == 2
    press(paused, "h")
    press(paused, "h")
    assert (paused.playback.canvas.pixels != live).any()
    paused.press(np.array([30.0, 100.0]))
    assert "this is the past" in paused.view.hint
    press(paused, "ArrowRight")
    while paused.view.back is not None:
        press(paused, "ArrowRight")
    assert record(paused).step == newest
