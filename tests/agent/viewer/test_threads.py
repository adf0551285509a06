"""Behind the window: the pace of steps, and threads that change nothing of the episodes."""

import json
import threading
import time

import imageio.v3 as imageio
import pytest

from agent.viewer.frame import HEIGHT, WIDTH
from agent.viewer.headless import run_headless
from agent.viewer.threads import Pace
from agent.viewer.video import Video
from tests.agent.viewer.playing import playback


def lines(path):
    kept = ("pair", "first_hit", "final", "steps", "actions", "final_distance")
    return [{key: json.loads(line)[key] for key in kept} for line in path.read_text().splitlines()]


def test_threads_and_drawing_do_not_change_the_episodes(tmp_path):
    plain, headless, shown = (tmp_path / f"{name}.jsonl" for name in ("plain", "headless", "shown"))
    list(playback(episodes=2, steps=10, log=plain).sequence)
    run_headless(playback(episodes=2, steps=10, log=headless))
    beside = playback(episodes=2, steps=10, log=shown)
    for _ in range(3):
        beside.pace.change_speed(2)
    beside.start()
    while not beside.over:
        time.sleep(0.01)
    beside.close()
    assert beside.error is None
    assert len(lines(plain)) == 2
    assert lines(plain) == lines(headless) == lines(shown)


def test_in_real_time_the_world_does_not_wait_for_the_drawing(tmp_path):
    run = playback(model="tests.analytic_world:RoomWorld", episodes=1, steps=15, realtime=True)
    run.record(Video(tmp_path / "video.mp4", 10))
    run_headless(run)
    run.close()
    assert run.hud.record.step == 15
    assert run.hud.record.clock is not None
    assert imageio.imread(tmp_path / "video.mp4").shape == (16, HEIGHT, WIDTH, 3)


class VirtualPace(Pace):
    """Its time passes only while it waits, so that nothing depends on how fast the machine is."""

    now = 0.0

    def _now(self):
        return self.now

    def _sleep(self, seconds):
        self.now += seconds


def test_a_pace_keeps_its_rate():
    pace = VirtualPace(hz=50)
    for _ in range(10):
        pace.wait()
    assert pace.now == pytest.approx(10 / 50)
    pace.wait(seconds=1)
    assert pace.now == pytest.approx(11 / 50 + 1)


def test_at_eight_times_the_speed_more_steps_are_taken():
    pace = VirtualPace(hz=10)

    def steps_in_a_second():
        count, end = 0, pace.now + 1 - 1e-6
        while pace.now < end:
            pace.wait()
            count += 1
        return count

    normal = steps_in_a_second()
    pace.change_speed(8)
    assert (normal, steps_in_a_second()) == (10, 80)


def test_a_late_pace_makes_up_for_one_step_at_most():
    pace = VirtualPace(hz=10)
    pace.wait()
    pace.now += 5  # a plan took that long
    started = pace.now
    for _ in range(10):
        pace.wait()
    assert pace.now - started == pytest.approx(0.8)  # the first is due at once, the second made up for


def test_a_paused_pace_takes_single_steps_and_lets_go_when_it_is_stopped():
    pace = Pace(hz=50)
    pace.pause(True)
    pace.step()
    pace.wait()
    waiting = threading.Thread(target=pace.wait)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    pace.stop()
    waiting.join(5)
    assert not waiting.is_alive()
