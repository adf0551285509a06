"""The front door as people use it: commands in a process of their own, and what they refuse."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pytest

import envs
import play
from agent.viewer.frame import HEIGHT, WIDTH
from agent.viewer.hud_state import HudState
from agent.world_models.registry import PRETRAINED
from envs import BadInput
from study import screenshots
from tests.agent.viewer.playing import virtual_screen

ROOT = Path(__file__).parent.parent
QUICK = ["--env", "two-room", "--model", "simulator", "--plan", "candidates=16", "iterations=2", "cost=sum"]


def environment(**more):
    """Ours without a display, with the test worlds in reach."""
    without = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return without | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"} | more


def command(*words, cwd, **more):
    line = [sys.executable, str(ROOT / "play.py"), *map(str, words)]
    return subprocess.run(line, cwd=cwd, env=environment(**more), capture_output=True, text=True, timeout=120)


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Runs the command line in this process, in an empty folder, without a display."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")

    def calling(*words):
        monkeypatch.setattr(sys, "argv", ["play.py", *map(str, words)])
        return play.main()

    return calling


def test_without_a_display_it_shows_a_bar_writes_a_video_and_says_where(tmp_path):
    done = command(*QUICK, "--episodes", 1, "--steps", 4, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "there is no display" in done.stdout
    assert "saved the video qqworld-two-room.mp4" in done.stdout
    assert "pygame" not in done.stdout
    assert "5/5" in done.stderr
    assert imageio.imread(tmp_path / "qqworld-two-room.mp4").shape == (5, HEIGHT, WIDTH, 3)


def test_a_display_that_does_not_answer_is_no_display(tmp_path):
    done = command(*QUICK, "--episodes", 1, "--steps", 2, cwd=tmp_path, DISPLAY=":987", SDL_VIDEODRIVER="x11")
    assert done.returncode == 0, done.stderr
    assert "there is no display" in done.stdout


def test_with_a_display_it_opens_a_window_and_records_it_on_demand(tmp_path):
    words = [*QUICK, "--episodes", 1, "--steps", 4, "--video", "video.mp4", "--log", "log.jsonl"]
    with virtual_screen() as screen:
        done = command(*words, cwd=tmp_path, DISPLAY=screen)
    assert done.returncode == 0, done.stderr
    assert "there is no display" not in done.stdout
    assert "frames/s" in done.stdout
    assert imageio.imread(tmp_path / "video.mp4").shape == (5, HEIGHT, WIDTH, 3)
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1


def test_bad_input_is_one_sentence_and_status_2(tmp_path):
    done = command("--env", "chess", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: unknown task 'chess': choose one of two-room, pusht, reacher, cube\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("window", [False, True])
def test_an_interrupt_leaves_a_whole_video(tmp_path, window):
    words = ["--env", "two-room", "--agent", "random", "--episodes", "500", "--video", "video.mp4"]
    with virtual_screen() if window else contextlib.nullcontext() as screen:
        running = subprocess.Popen(
            [sys.executable, str(ROOT / "play.py"), *words],
            cwd=tmp_path,
            env=environment(**({"DISPLAY": screen} if screen else {})),
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell ignores it
        )
        video, end = tmp_path / "video.mp4", time.perf_counter() + 60
        while not video.exists() or video.stat().st_size == 0:
            assert time.perf_counter() < end
            time.sleep(0.05)
        time.sleep(1)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: the encoder gets it too
        errors = running.communicate(timeout=60)[1].decode()
    assert running.returncode == 130
    assert "Traceback" not in errors
    assert len(imageio.imread(video)) > 5


@pytest.mark.parametrize("agent", ["random", "zero", "expert"])
def test_rules_need_no_model(call, agent, tmp_path):
    assert call("--env", "two-room", "--agent", agent, "--episodes", 1, "--steps", 2, "--video", "v.mp4") == 0
    assert (tmp_path / "v.mp4").stat().st_size > 1000


def test_random_acts_as_its_seed_says_and_unlike_zero(call, tmp_path):
    runs = [("random", 5), ("random", 5), ("random", 6), ("zero", 5)]
    for agent, seed in runs:
        call("--env", "two-room", "--agent", agent, "--episodes", 1, "--steps", 3, "--seed", seed, "--log", "log.jsonl")
    first, again, other, still = (
        json.loads(line)["actions"] for line in (tmp_path / "log.jsonl").read_text().splitlines()
    )
    assert first == again
    assert first != other
    assert np.abs(first).max(axis=1).min() > 0
    np.testing.assert_array_equal(still, 0)


def test_a_model_of_ones_own_plays_and_its_episodes_are_logged(call, tmp_path):
    for _ in range(2):
        call("--env", "two-room", "--model", "tests.analytic_world:PixelRoomWorld", "--planner", "mppi", "--plan",
             "iterations=2", "--episodes", 2, "--steps", 3, "--seed", 5, "--log", "log.jsonl")  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [(line["seed"], line["pair"], line["steps"]) for line in lines] == [(5, 0, 3), (5, 1, 3)] * 2
    assert lines[0]["planner"]["name"] == "mppi"
    assert lines[0]["actions"] == lines[2]["actions"]


def test_it_prints_the_path_that_it_took_and_passes_over_a_file_here_of_another_task(call, tmp_path, capsys):
    shutil.copy(PRETRAINED / "pusht" / "qqworld.onnx", tmp_path / "qqworld.onnx")
    assert call("--env", "two-room", "--model", "qqworld.onnx", "--episodes", 1, "--steps", 2) == 0
    assert f"two-room: {PRETRAINED / 'two-room' / 'qqworld.onnx'} on " in capsys.readouterr().out


def test_far_goals_have_twice_their_offset_as_time_and_are_logged_as_such(call, tmp_path):
    call("--env", "two-room", "--agent", "zero", "--episodes", 1, "--offset", 30, "--log", "log.jsonl")
    line = json.loads((tmp_path / "log.jsonl").read_text())
    assert (line["offset"], line["steps"]) == (30, 60)
    np.testing.assert_array_equal(line["goal"], envs.pairs("two-room", 0, 1, offset=30)[0].goal)


@pytest.mark.parametrize("goal", ["pair", "random", "120,60", "picture"])
def test_a_goal_is_a_pair_s_random_numbers_or_a_picture(call, tmp_path, goal):
    if goal == "picture":
        goal = str(tmp_path / "goal.png")
        imageio.imwrite(goal, envs.make("two-room").picture(100, np.array([60.0, 150.0])))
    call(*QUICK, "--episodes", 1, "--steps", 2, "--goal", goal, "--log", "log.jsonl")
    reached = json.loads((tmp_path / "log.jsonl").read_text())["goal"]
    expected = {"pair": envs.pairs("two-room", 0, 1)[0].goal, "120,60": [120, 60]}
    if goal in expected:
        np.testing.assert_allclose(reached, expected[goal])
    if goal.endswith("png"):
        np.testing.assert_allclose(reached, [60, 150], atol=4)


def test_real_time_and_a_time_for_plans_are_taken_into_account(call, tmp_path):
    quick = ["--env", "two-room", "--model", "tests.analytic_world:RoomWorld", "--episodes", 1, "--steps", 8]
    call(*quick, "--realtime", "--plan-ms", 50, "--log", "log.jsonl")
    line = json.loads((tmp_path / "log.jsonl").read_text())
    assert line["realtime"]
    assert line["steps"] == 8


def test_pairs_are_found_again_by_their_number(call, tmp_path):
    call("--env", "two-room", "--agent", "zero", "--episodes", 2, "--steps", 2, "--pair", 7, "--log", "log.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["pair"] for line in lines] == [7, 8]
    np.testing.assert_array_equal(lines[0]["start"], envs.pairs("two-room", 0, 8)[7].start)


def test_failed_episodes_of_a_log_are_played_again(call, tmp_path, capsys):
    call(*QUICK, "--episodes", 2, "--steps", 6, "--pair", 3, "--seed", 5, "--log", "log.jsonl")
    capsys.readouterr()
    call(
        "--replay", "log.jsonl", "--pick", "failed", "--model", "simulator", "--log", "again.jsonl", "--video", "v.mp4"
    )
    lines, again = (
        [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        for name in ("log.jsonl", "again.jsonl")
    )
    kept = ("task", "seed", "pair", "start", "goal", "actions", "planner", "final_distance")
    failed = [line for line in lines if not line["success"]]
    assert [[line[key] for key in kept] for line in again] == [[line[key] for key in kept] for line in failed]
    assert again[0]["agent"] == "replay"
    assert "saved the video v.mp4" in capsys.readouterr().out
    assert len(imageio.imread(tmp_path / "v.mp4")) == 7 * len(failed)


def test_a_time_for_plans_that_is_too_short_is_told(tmp_path):
    quick = ["--env", "two-room", "--model", "simulator", "--episodes", 1, "--steps", 6, "--plan-ms", 0.01]
    done = command(*quick, cwd=tmp_path)
    assert "\nwarning: planner cem cannot make a plan in 0.01 ms" in done.stderr.replace("\r", "\n")
    assert "2 plans of the last episode missed their deadline" in done.stdout


def test_a_window_that_is_left_before_an_episode_ends_tells_no_rate():
    hud = HudState(2)
    assert play._said(hud, None) == ["no episode was finished"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--agent", "expert", "--pair", "-1"], "--pair must be at least 0"),
        (["--replay", "no.jsonl"], "there is no log no.jsonl"),
        (["--model", "nosuch.onnx"], "there is no model nosuch.onnx, here or under pretrained/two-room/, which holds"),
        (["--model", "no.module:Class"], "neither a file nor a class"),
        (["--model", "simulator", "--planner", "magic"], "unknown planner 'magic'"),
        (["--model", "simulator", "--plan", "candidates"], "written key=value"),
        (["--model", "simulator", "--plan-ms", "0"], "--plan-ms must be above 0"),
        (["--agent", "expert", "--episodes", "0"], "--episodes must be at least 1"),
        (["--agent", "expert", "--steps", "0"], "--steps must be at least 1"),
        (["--agent", "expert", "--offset", "0"], "--offset must be at least 1"),
        (["--agent", "expert", "--seed", "-1"], "--seed must be at least 0"),
        (["--agent", "expert", "--goal", "1,2,3"], "a goal of two-room has 2 numbers"),
        (["--agent", "expert", "--goal", "x.png"], "--goal is pair, random, a picture"),
        (["--agent", "expert", "--video", "no/v.mp4"], "the folder no does not exist"),
        (["--agent", "expert", "--video", "v.txt"], "one of the endings"),
        (["--agent", "expert", "--log", "no/l.jsonl"], "the folder no does not exist"),
        (["--agent", "genius"], "genius"),
        (["--fly"], "fly"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(call, words, sentence):
    with pytest.raises(BadInput, match=sentence) as refusal:
        call("--env", "two-room", *words)
    assert "\n" not in str(refusal.value)


def test_screenshots_and_a_gif_for_the_documentation(monkeypatch, tmp_path, capsys):
    words = ["--out", str(tmp_path), "--tasks", "two-room", "--gif", "two-room", "--seconds", "1", "--step", "3"]
    monkeypatch.setattr(sys, "argv", ["screenshots", *words, "--plan", "arrivals=2", "cost=sum"])
    assert screenshots.main() == 0
    assert imageio.imread(tmp_path / "window-two-room.png").shape == (HEIGHT, WIDTH, 3)
    assert len(imageio.imread(tmp_path / "play.gif")) == 10
    assert str(tmp_path / "play.gif") in capsys.readouterr().out
