"""Collecting: same bytes however it was run, nothing finished is ever lost, bad input is one sentence."""

import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import envs
from envs.collect import Collect, collect, contact_sheet
from envs.dataset.writer import finished


def command(*words):
    return [sys.executable, "-m", "envs.collect", *map(str, words)]


def run(*words, **settings):
    return subprocess.run(command(*words), capture_output=True, text=True, **settings)


def columns(path):
    with h5py.File(path) as file:
        return {name: file[name][:] for name in file}


def assert_same_columns(one, other):
    one, other = columns(one), columns(other)
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name


@pytest.mark.parametrize(
    ("task", "episodes", "every"), [("two-room", 9, 1), ("pusht", 6, 5), ("reacher", 3, 1), ("cube", 2, 5)]
)
def test_one_worker_and_two_write_the_same_bytes(tmp_path, task, episodes, every):
    settings = {"env": task, "episodes": episodes, "every": every, "steps": 20, "seed": 3}

    collect(Collect(out=tmp_path / "one.h5", workers=1, **settings), progress=False)
    collect(Collect(out=tmp_path / "two.h5", workers=2, **settings), progress=False)

    assert_same_columns(tmp_path / "one.h5", tmp_path / "two.h5")
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()


def test_rows_have_the_published_layout(tmp_path):
    path = tmp_path / "data.h5"
    collect(Collect(env="pusht", out=path, episodes=3, steps=30), progress=False)
    task, data = envs.make("pusht"), columns(path)

    assert data["pixels"].shape == (93, 64, 64, 3)
    assert data["ep_len"].tolist() == [31, 31, 31]
    assert data["ep_offset"].tolist() == [0, 31, 62]
    np.testing.assert_array_equal(data["ep_idx"], np.repeat([0, 1, 2], 31))
    np.testing.assert_array_equal(data["step_idx"], np.tile(np.arange(31), 3))
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(data["action"]).any(axis=1)), [30, 61, 92])
    for row in (0, 17, 61 + 1):
        np.testing.assert_array_equal(data["pixels"][row], task.draw(data["state"][row]))
        if not np.isnan(data["action"][row]).any():
            np.testing.assert_array_equal(data["state"][row + 1], task.advance(data["state"][row], data["action"][row]))
    with h5py.File(path) as file:
        assert file.attrs["task"] == "pusht"
        assert file.attrs["frame_skip"] == 1
        assert "pymunk" in file.attrs["versions"]


def test_storing_every_fifth_step_keeps_the_same_episodes_and_all_actions(tmp_path):
    for every in (1, 5):
        collect(
            Collect(env="two-room", out=tmp_path / f"{every}.h5", episodes=2, steps=20, every=every), progress=False
        )

    each, fifth = columns(tmp_path / "1.h5"), columns(tmp_path / "5.h5")

    assert fifth["action"].shape == (10, 10)
    np.testing.assert_array_equal(fifth["pixels"][:5], each["pixels"][:21:5])
    np.testing.assert_array_equal(fifth["state"][5:], each["state"][21::5])
    np.testing.assert_array_equal(fifth["action"][:4].reshape(20, 2), each["action"][:20])


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_collection_keeps_what_was_finished_and_goes_on_to_the_same_bytes(tmp_path, stop):
    words = ("--env", "two-room", "--episodes", 500, "--workers", 2, "--seed", 5, "--every", 1, "--stray", 0)
    whole, stopped = tmp_path / "whole.h5", tmp_path / "stopped.h5"
    child = subprocess.Popen(
        command(*words, "--out", stopped),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell ignores it
    )
    partial = tmp_path / "stopped.h5.partial"
    deadline = time.monotonic() + 60
    while not (partial.exists() and finished(partial).any()):
        assert child.poll() is None, child.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.send_signal(stop)
    child.wait(30)
    kept = finished(partial)
    before = columns(partial)

    assert not stopped.exists()
    assert 0 < kept.sum() < 500
    again = run(*words, "--out", stopped)

    assert again.returncode == 0, again.stderr
    assert not partial.exists()
    rows = np.repeat(kept, 101)
    np.testing.assert_array_equal(columns(stopped)["pixels"][rows], before["pixels"][rows])
    collect(Collect(env="two-room", out=whole, episodes=500, seed=5, workers=2), progress=False)
    assert_same_columns(stopped, whole)


def test_a_finished_file_is_left_alone_unless_overwrite_is_given(tmp_path):
    path = tmp_path / "data.h5"
    words = ("--env", "two-room", "--steps", 10, "--out", path)
    assert run(*words, "--episodes", 2).returncode == 0
    written = path.stat().st_mtime_ns, path.read_bytes()

    same = run(*words, "--episodes", 2)
    other = run(*words, "--episodes", 3)

    assert same.returncode == 0
    assert other.returncode == 2
    assert "episodes is 2 there, not 3" in other.stderr
    assert (path.stat().st_mtime_ns, path.read_bytes()) == written
    assert run(*words, "--episodes", 3, "--overwrite").returncode == 0
    assert len(columns(path)["ep_len"]) == 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--env", "atari"), "unknown task 'atari'"),
        (("--env", "two-room", "--size", "0"), "a picture cannot have side 0"),
        (("--env", "two-room", "--episodes", "0"), "--episodes must be at least 1"),
        (("--env", "two-room", "--seed", "-1"), "--seed must be at least 0"),
        (("--env", "two-room", "--workers", "0"), "--workers must be at least 1"),
        (("--env", "two-room", "--every", "7"), "give a whole multiple"),
        (("--env", "two-room", "--episodes", "many"), "invalid literal for int() with base 10: 'many'"),
        (("--env", "two-room", "--colour", "red"), "--colour"),
        (("--env", "two-room", "--look", "nice"), "invalid choice 'nice' for argument '--look'"),
    ],
)
def test_bad_input_is_one_sentence_with_status_2_and_leaves_nothing_behind(tmp_path, words, sentence):
    child = run(*words, "--out", tmp_path / "data.h5")

    assert child.returncode == 2
    assert sentence in child.stderr
    assert child.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["truncated", "text", "empty"])
def test_a_damaged_file_is_named_and_never_touched(tmp_path, damage):
    path = tmp_path / "data.h5"
    words = ("--env", "two-room", "--episodes", "2", "--steps", "10", "--out", path)
    run(*words)
    content = {"truncated": path.read_bytes()[:50_000], "text": b"hello", "empty": b""}[damage]
    path.write_bytes(content)

    child = run(*words)

    assert child.returncode == 2
    assert "truncated, damaged or of another kind" in child.stderr
    assert child.stderr.count("\n") == 1
    assert path.read_bytes() == content


def test_a_full_disk_is_one_sentence_before_any_work_and_leaves_nothing_behind(tmp_path):
    import resource

    child = run(
        *("--env", "two-room", "--episodes", "100", "--out", tmp_path / "data.h5"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6)),
    )

    assert child.returncode == 2
    assert "no room for" in child.stderr
    assert child.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")

    child = run("--env", "two-room", "--episodes", "1", "--out", tmp_path / "file" / "data.h5")

    assert child.returncode == 2
    assert "cannot write" in child.stderr
    assert "Traceback" not in child.stderr


def test_a_killed_worker_is_reported_and_the_same_command_goes_on(tmp_path):
    words = ("--env", "two-room", "--episodes", 300, "--workers", 2, "--out", tmp_path / "data.h5")
    child = subprocess.Popen(command(*words), stderr=subprocess.PIPE, text=True)
    partial = tmp_path / "data.h5.partial"
    while not (partial.exists() and finished(partial).any()):
        assert child.poll() is None
        time.sleep(0.01)
    listing = subprocess.run(
        ["ps", "ww", "-o", "pid=,args=", "--ppid", str(child.pid)], capture_output=True, text=True
    ).stdout
    worker = next(line.split()[0] for line in listing.splitlines() if "spawn_main" in line)
    os.kill(int(worker), signal.SIGKILL)

    _, errors = child.communicate(timeout=60)

    assert child.returncode == 2
    assert "a worker process was killed" in errors
    assert "Traceback" not in errors
    assert run(*words).returncode == 0


def test_the_contact_sheet_shows_eight_episodes_of_eight_frames(tmp_path):
    path = tmp_path / "data.h5"
    collect(Collect(env="two-room", out=path, episodes=9, steps=20), progress=False)

    sheet = contact_sheet(path, side=128)

    assert sheet.shape == (8 * 132, 8 * 132, 3)
    first = columns(path)["pixels"][0]
    np.testing.assert_array_equal(sheet[2:130:2, 2:130:2], first)
    assert path.with_suffix(".png").exists()
