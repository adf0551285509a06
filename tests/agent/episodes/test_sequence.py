"""Episodes one after another: what a person changes, what is logged, and how it all stops."""

import json
import threading
import time

import numpy as np
import pytest

from agent.episodes.sequence import StoppableModel, Stopped
from agent.viewer.hud_state import HudState
from agent.world_models import registry
from tests.agent.viewer.playing import playback


def test_an_episode_that_was_left_is_not_logged_and_one_by_hand_does_not_count(tmp_path):
    run = playback(episodes=3, steps=4, log=tmp_path / "log.jsonl")
    hud = HudState(2)
    for record in run.sequence:
        hud.add(record)
        if record.pair == 0 and record.step == 2:
            run.sequence.next_pair()
        if record.pair == 1 and record.step == 1:
            run.sequence.push(np.array([5.0, 0.0]))
    logged = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["pair"] for line in logged] == [1, 2]
    assert list(hud.results) == [2]


def test_a_goal_at_the_last_step_gives_fresh_time():
    run = playback(episodes=1, steps=4)
    records = []
    for record in run.sequence:
        records.append(record)
        if record.step == 4:
            run.sequence.aim(np.array([60.0, 60.0]))
    assert records[-1].step == records[-1].limit == 8


def test_a_stoppable_model_stops_and_is_asked_by_one_thread_at_a_time(monkeypatch):
    inside, most, lock = 0, 0, threading.Lock()

    def encode(observations):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.02)
        with lock:
            inside -= 1
        return observations

    model = registry.load("tests.analytic_world:RoomWorld", "two-room")
    monkeypatch.setattr(model, "encode", encode)
    stoppable = StoppableModel(model)
    threads = [threading.Thread(target=stoppable.encode, args=(np.zeros(1),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert stoppable.task == "two-room"
    stoppable.stop()
    with pytest.raises(Stopped):
        stoppable.rollout(np.zeros(1), np.zeros(1), np.zeros(1))
