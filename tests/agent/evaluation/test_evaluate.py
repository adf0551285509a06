"""Evaluations: the same episodes however they are run, resumed without loss, failures reported, bad input refused."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields

import pytest

from agent.episodes.outcome import read_lines
from agent.episodes.settings import EpisodeSettings
from agent.evaluate import Evaluate, evaluate
from agent.evaluation import workers
from envs import BadInput

ROOM = "tests.analytic_world:RoomWorld"
TIMING = ("plan_ms", "plan_ms_p50", "plan_ms_p95")
SMALL = ("candidates=16", "iterations=2", "elites=4", "keep=2")


def settings(out, **more):
    """A small evaluation; `more` are settings of each episode or of the evaluation."""
    given = {"env": "two-room", "plan": SMALL, "model": (ROOM,), "episodes": 3, "out": out} | more
    how = {field.name: given.pop(field.name) for field in fields(EpisodeSettings) if field.name in given}
    return Evaluate(EpisodeSettings(**how), **given)


def lines(folder):
    """Every line of an evaluation by its episode, without what the clock says."""
    found = {}
    for line in read_lines(folder / "episodes.jsonl"):
        key = line["subject"], line["seed"], line["pair"]
        assert key not in found, "an episode counts twice"
        found[key] = {name: value for name, value in line.items() if name not in TIMING}
    return found


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The folder and the summary of an evaluation in one process, one episode after the other."""
    out = tmp_path_factory.mktemp("reference")
    return out, evaluate(settings(out, seeds=(0, 1)), progress=False)


def test_the_folder_holds_episodes_summary_and_report(reference):
    out, result = reference
    assert json.loads((out / "summary.json").read_text()) == json.loads(json.dumps(result))
    assert len(lines(out)) == 3 * 2 * 3  # the model, random and zero; two seeds; three pairs
    assert "| random |" in (out / "summary.md").read_text()
    assert (out / "report.html").read_text().startswith("<!doctype html>")


def test_rates_of_models_and_agents_come_with_their_intervals(reference):
    out, result = reference
    for name, group in ((ROOM, "models"), ("random", "agents"), ("zero", "agents")):
        mine = [line for (subject, *_), line in lines(out).items() if subject == name]
        for what, field in (("first_hit", "success"), ("final", "final")):
            rate = result[group][name][what]
            assert rate["n"] == 6
            assert rate["rate"] == sum(line[field] for line in mine) / 6
            assert rate["low"] <= rate["rate"] <= rate["high"]
            assert rate["mean"] == pytest.approx((rate["seeds"]["0"]["rate"] + rate["seeds"]["1"]["rate"]) / 2)
    assert result["agents"]["zero"]["first_hit"]["rate"] == 0  # no pair is solved at its start


def test_a_line_says_what_an_episode_was_made_with(reference):
    line = lines(reference[0])[ROOM, 1, 2]
    assert line["planner"]["name"] == "cem"
    assert line["planner"]["candidates"] == 16
    assert line["versions"]["numpy"]
    assert line["steps"] == len(line["actions"]) == 50
    assert line["success"] == (line["first_hit"] is not None)
    assert {"model_sha256", "provider", "gl", "misses", "final_distance"} <= line.keys()


def test_far_goals_have_twice_their_offset_as_time_and_are_recorded_as_such(tmp_path):
    result = evaluate(settings(tmp_path, model=(), agents=("zero",), episodes=1, offset=40), progress=False)
    line = lines(tmp_path)["zero", 0, 0]
    assert (line["offset"], line["steps"]) == (40, 80)
    assert (result["configuration"]["offset"], result["configuration"]["steps"]) == (40, 80)


def test_worker_processes_give_the_same_episodes(reference, tmp_path):
    evaluate(settings(tmp_path, seeds=(0, 1), workers=2), progress=False)
    assert lines(tmp_path) == lines(reference[0])


def test_planning_episodes_together_gives_the_same_episodes(reference, tmp_path):
    evaluate(settings(tmp_path, seeds=(0, 1), batch=3), progress=False)
    assert lines(tmp_path) == lines(reference[0])


def test_a_world_model_file_gives_the_same_episodes_alone_together_and_in_workers(tmp_path):
    pytest.importorskip("torch", reason="needs torch to make a file")
    from tests import tiny

    file = str(tiny.file(tmp_path))
    ways = {"alone": {}, "together": {"batch": 3}, "workers": {"workers": 2}}
    for way, how in ways.items():
        evaluate(settings(tmp_path / way, model=(file,), agents=(), **how), progress=False)
    assert lines(tmp_path / "alone")[file, 0, 0]["model_sha256"]
    for way in ("together", "workers"):
        for key, line in lines(tmp_path / way).items():
            assert line["actions"] == lines(tmp_path / "alone")[key]["actions"]


def test_an_interrupted_evaluation_goes_on_and_repeats_nothing(reference, tmp_path):
    whole = (reference[0] / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    evaluate(settings(tmp_path, agents=(), episodes=1), progress=False)
    (tmp_path / "episodes.jsonl").write_bytes(b"".join(whole[:7]) + whole[7][:40])  # cut short in the eighth
    evaluate(settings(tmp_path, seeds=(0, 1)), progress=False)
    assert lines(tmp_path) == lines(reference[0])
    assert (tmp_path / "episodes.jsonl").read_bytes().startswith(b"".join(whole[:7]))


def test_more_episodes_extend_an_evaluation(reference, tmp_path):
    evaluate(settings(tmp_path, episodes=2, seeds=(1,)), progress=False)
    evaluate(settings(tmp_path, seeds=(0, 1)), progress=False)
    assert lines(tmp_path) == lines(reference[0])


def test_a_worker_that_is_killed_loses_no_episode(reference, tmp_path, monkeypatch):
    monkeypatch.setenv("DEADLY_WORLD", str(tmp_path / "killed"))
    deadly = "tests.analytic_world:DeadlyWorld"
    evaluate(settings(tmp_path / "out", model=(deadly,), seeds=(0, 1), workers=2, agents=()), progress=False)
    assert (tmp_path / "killed").exists()
    assert {key[1:]: line["actions"] for key, line in lines(tmp_path / "out").items()} == {
        key[1:]: line["actions"] for key, line in lines(reference[0]).items() if key[0] == ROOM
    }


def test_ray_gives_the_same_episodes_also_when_a_worker_is_killed(reference, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed (extra 'cluster')")
    monkeypatch.setenv("DEADLY_WORLD", str(tmp_path / "killed"))
    deadly = "tests.analytic_world:DeadlyWorld"
    path = os.pathsep.join([os.getcwd(), os.getcwd()])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"DEADLY_WORLD": str(tmp_path / "killed"), "PYTHONPATH": path}},
    )
    try:
        out = tmp_path / "out"
        evaluate(settings(out, model=(ROOM, deadly), seeds=(0, 1), ray=True), progress=False)
    finally:
        ray.shutdown()
    assert (tmp_path / "killed").exists()
    found = lines(out)
    assert {key: line for key, line in found.items() if key[0] != deadly} == lines(reference[0])
    assert {key[1:]: line["actions"] for key, line in found.items() if key[0] == deadly} == {
        key[1:]: line["actions"] for key, line in found.items() if key[0] == ROOM
    }


def test_without_ray_the_flag_is_answered_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadInput, match=r"pip install 'qqworld\[cluster\]'"):
        evaluate(settings(tmp_path, ray=True), progress=False)


def test_a_failed_episode_is_reported_counts_as_unsolved_and_is_tried_again(tmp_path):
    failing = "tests.analytic_world:FailingWorld"
    result = evaluate(settings(tmp_path, model=(failing,), agents=(), episodes=6, batch=3), progress=False)
    failed = [line for line in lines(tmp_path).values() if "error" in line]
    assert 0 < len(failed) < 6
    assert all("ArithmeticError: the upper half is beyond me" in line["error"] for line in failed)
    assert result["models"][failing]["failed"] == len(failed) == len(result["failed"])
    assert result["models"][failing]["first_hit"]["n"] == 6
    assert "failed and counts as not solved" in (tmp_path / "summary.md").read_text()

    evaluate(settings(tmp_path, model=(failing,), agents=(), episodes=6, batch=3), progress=False)
    assert len(list(read_lines(tmp_path / "episodes.jsonl"))) == 6 + len(failed)


def test_two_models_are_compared_on_the_pairs_that_only_one_solves(tmp_path):
    better, worse = ROOM, "tests.analytic_world:PoorRoomWorld"
    result = evaluate(settings(tmp_path, model=(better, worse), agents=(), episodes=12), progress=False)
    found = lines(tmp_path)
    only_better = [n for n in range(12) if found[better, 0, n]["success"] and not found[worse, 0, n]["success"]]
    (comparison,) = result["comparisons"]
    assert comparison["only_first"] == len(only_better) > 0
    assert [one["pair"] for one in comparison["only_first_pairs"]] == only_better
    assert comparison["both"] + comparison["neither"] + comparison["only_first"] + comparison["only_second"] == 12
    assert 0 < comparison["p"] <= 1


def test_a_model_that_is_as_good_shows_no_difference(tmp_path):
    other = "tests.analytic_world:OtherRoomWorld"
    result = evaluate(settings(tmp_path, model=(ROOM, other), agents=()), progress=False)
    assert result["comparisons"][0]["p"] == 1.0


def test_pushes_change_the_episodes_and_are_logged(reference, tmp_path):
    evaluate(settings(tmp_path, disturb=2.0, agents=()), progress=False)
    pushed, calm = lines(tmp_path), lines(reference[0])
    assert any(line["pushes"] for line in pushed.values())
    assert all(pushed[key]["actions"] != calm[key]["actions"] for key in pushed if pushed[key]["pushes"])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"env": "mars"}, "unknown task 'mars': choose one of two-room, pusht, reacher, cube"),
        ({"model": ("nowhere.onnx",)}, "there is no model nowhere.onnx"),
        ({"model": (ROOM, ROOM)}, "--model names something twice"),
        ({"planner": "magic"}, "unknown planner 'magic'"),
        ({"plan": ("candidates",)}, "key=value"),
        ({"plan": ("candidates=-3",)}, "candidates of the planner must be at least 1"),
        ({"plan": ("horizon=9",)}, "predicts 5 blocks at most"),
        ({"agents": ("genius",)}, "unknown agent 'genius'"),
        ({"episodes": 0}, "--episodes must be at least 1, got 0"),
        ({"seeds": (0, -1)}, "--seeds must be 0 or more, got 0 -1"),
        ({"seeds": ()}, "--seeds must be 0 or more, got none"),
        ({"workers": 0}, "--workers must be at least 1, got 0"),
        ({"steps": 0}, "--steps must be at least 1, got 0"),
        ({"threads": 0}, "--threads must be above 0, got 0"),
        ({"plan_ms": 0.0}, "--plan-ms must be above 0"),
        ({"model": (), "agents": ()}, "there is nothing to measure"),
        ({"realtime": True, "batch": 2}, "--realtime runs one episode at a time"),
    ],
)
def test_wrong_input_is_answered_in_one_sentence_before_anything_is_written(tmp_path, wrong, sentence):
    with pytest.raises(BadInput, match=sentence):
        evaluate(settings(tmp_path / "out", **wrong), progress=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("other", [{"offset": 10}, {"plan": ("candidates=8", "elites=4", "keep=2")}, {"disturb": 1.0}])
def test_results_of_different_configurations_do_not_mix(reference, other):
    before = (reference[0] / "episodes.jsonl").read_bytes()
    with pytest.raises(BadInput, match="holds results of another configuration"):
        evaluate(settings(reference[0], seeds=(0, 1), **other), progress=False)
    assert (reference[0] / "episodes.jsonl").read_bytes() == before


def command(*arguments):
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    return subprocess.Popen(
        [sys.executable, "-m", "agent.evaluate", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_the_command_line_exits_with_0_1_or_2(tmp_path):
    common = ("--env", "two-room", "--episodes", 2, "--agents", "zero", "--plan", *SMALL)
    good = command(*common, "--model", ROOM, "--out", tmp_path / "good")
    failing = command(*common, "--model", "tests.analytic_world:FailingWorld", "--out", tmp_path / "failing")
    bad = command("--env", "two-room", "--workers", 0)
    (said, _), _, (_, complaint) = (process.communicate() for process in (good, failing, bad))
    assert (good.returncode, failing.returncode, bad.returncode) == (0, 1, 2)
    assert "| zero | 0%" in said
    assert complaint == "error: --workers must be at least 1, got 0\n"


def test_stopped_with_control_c_it_says_how_to_go_on_and_goes_on(reference, tmp_path):
    arguments = ("--env", "two-room", "--model", ROOM, "--episodes", 3, "--seeds", 0, 1, "--plan", *SMALL)
    process = command(*arguments, "--out", tmp_path, "--workers", 2)
    while not (tmp_path / "episodes.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    if process.returncode != 0:  # else it was done before it was stopped
        assert process.returncode == 130
        assert "run the same command again to go on" in complaint
        assert "Traceback" not in complaint
    evaluate(settings(tmp_path, seeds=(0, 1)), progress=False)
    assert lines(tmp_path) == lines(reference[0])


def test_a_job_that_keeps_killing_its_worker_becomes_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "TRIES", 1)
    monkeypatch.setenv("DEADLY_WORLD", str(tmp_path / "killed"))
    out = tmp_path / "out"
    result = evaluate(
        settings(out, model=("tests.analytic_world:DeadlyWorld",), agents=(), episodes=1, workers=2), progress=False
    )
    assert result["failed"][0]["error"].startswith("BrokenProcessPool")
