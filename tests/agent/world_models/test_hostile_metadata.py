"""Metadata that was made to hurt: settings, numbers and text; each is refused in one sentence."""

import json

import pytest

from agent.episodes.planner_thread import PlannerThread
from agent.world_models import file as model_file
from agent.world_models.file.metadata import MAX_ROW_NUMBERS
from envs.errors import BadInput
from tests import tiny
from tests.agent.world_models.edits import described, edited, refusal


@pytest.fixture(scope="module")
def good() -> bytes:
    return tiny.content(components=2)


PLANNERS = [
    {"iterations": 10**15},
    {"candidates": 3_000_000},
    {"candidates": 5000, "iterations": 1000},
    {"samples": 10**9},
    {"arrivals": 10**9},
    {"reach": 10**9},
    {"elites": 10**400},
    {"elites": 10**18},
    {"horizon": 10**9},
    {"std": 1e308},
    {"colour": 1e6},
    {"temperature": 1e-320},
    {"candidates": "many"},
    {"candidates": None},
    {"candidates": [1]},
    {"cost": 3},
    {"name": ["cem"]},
    {"name": None},
    {"name": 7},
    {"name": "cem\x1b[31m"},
    {"na\nme": 1},
    {"x" * 300: 1},
]


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_file_asks_for_no_more_than_a_planner_can_do(good, planner):
    sentence = refusal(described(good, planner=planner))
    assert "planner" in sentence
    assert sentence.isprintable()
    assert len(sentence) < 300


def test_a_planner_as_large_as_the_published_one_is_accepted(good):
    published = {"name": "lewm", "candidates": 300, "iterations": 30, "elites": 30, "std_floor": 0.0}
    assert model_file.parse_file(described(good, planner=published)).metadata.planner == published


@pytest.mark.parametrize("name", ["action_low", "action_high", "action_mean", "action_std"])
@pytest.mark.parametrize("value", [1e308, -1e308, 1e400, 10**400, 1e7, float("nan")])
def test_numbers_that_no_action_has_are_refused(good, name, value):
    assert f"{name}" in refusal(described(good, **{name: [value, 0.5]}))


@pytest.mark.parametrize("name", ["licence", "preset", "objective", "data", "revision", "task", "format", "look"])
@pytest.mark.parametrize("text", ["\x1b[2J", "two\nlines", "\u202eback", "x" * 5000, "\x9b31m"])
def test_text_that_would_do_something_to_a_terminal_is_refused(good, name, text):
    sentence = refusal(described(good, **{name: text}))
    assert sentence.isprintable()
    assert len(sentence) < 300


def test_a_name_of_a_file_cannot_break_the_sentence(tmp_path):
    path = tmp_path / "two\nlines\x1b[31m.onnx"
    path.write_text("hello")
    with pytest.raises(BadInput) as refused:
        model_file.read(path)
    assert str(refused.value).isprintable()


def test_rows_of_too_many_numbers_are_refused(good):
    sizes = {"history": 16, "horizon": 64, "latent_size": 8192, "action_block": 64}
    assert f"more than {MAX_ROW_NUMBERS:,} numbers" in refusal(described(good, **sizes))


def test_numbers_of_very_many_digits_are_refused(good):
    def edit(model):
        text = json.loads(model.metadata_props[0].value)
        written = json.dumps(text | {"steps": 0}).replace('"steps": 0', '"steps": ' + "9" * 60_000)
        model.metadata_props[0].value = written

    assert "metadata is not JSON" in refusal(edited(good, edit))


def test_what_a_model_refuses_in_the_planners_thread_stays_a_sentence():
    class Refusing:
        def encode(self, observations):
            raise BadInput("the model's latents are not finite numbers")

    class Request:
        observations = past_actions = None

    thread = PlannerThread(Refusing())
    try:
        thread.submit(None, Request())
        with pytest.raises(BadInput, match="not finite numbers"):
            thread.collect(5)
    finally:
        thread.close()
