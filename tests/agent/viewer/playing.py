"""A playback in a blink: Two-Room, a small planner and the simulator as world model; how to drive it; and a screen."""

import contextlib
import dataclasses
import shutil
import subprocess
import time

import pytest

from agent.episodes.sequence import SequenceSettings
from agent.episodes.settings import EpisodeSettings
from agent.factory import make_agent
from agent.viewer.threads import Pace, make_playback

SMALL = ("candidates=16", "iterations=2", "cost=sum")


def playback(task="two-room", model="simulator", rule=None, goal="pair", realtime=False, steps=None, **settings):
    episode = EpisodeSettings(task, steps=steps, plan=SMALL, realtime=realtime)
    return make_playback(make_agent(episode, model, rule), SequenceSettings(episode, **settings), goal)


class WatchedPace(Pace):
    """Tells when the next step waits for a person."""

    sleeping = False

    def _sleep(self, seconds):
        self.sleeping = True
        super()._sleep(seconds)
        self.sleeping = False

    def still(self):
        with self._change:
            return self.paused and self.sleeping and not self._steps


def watched(run):
    """`run` with a pace that can be watched, and with the view of its newest frame as `shown`."""
    show = run.show

    def show_and_note(records, view):
        show(records, view)
        run.shown = view

    run.show, run.shown = show_and_note, None
    run.pace = WatchedPace(run.sequence.task.control_hz)
    return run


def until(viewer, happened, seconds=60.0):
    """Update the view until something `happened`; `seconds` is only how long a broken test takes."""
    end = time.perf_counter() + seconds
    while not happened():
        assert time.perf_counter() < end, "it did not happen"
        assert viewer.playback.error is None, viewer.playback.error
        viewer.update(30)
        time.sleep(0.002)


def settle(viewer):
    """Wait until no step is on its way and the newest frame shows the newest record and view."""
    until(viewer, viewer.pace.still)
    viewer.view = dataclasses.replace(viewer.view)  # equal but another one, so that a frame is drawn after all others
    until(viewer, lambda: viewer.playback.shown is viewer.view)


def press(viewer, key):
    """Press a key of a playback that is paused, and see what comes of it."""
    viewer.key(key)
    settle(viewer)


def drag(viewer, start, end):
    viewer.press(start)
    viewer.drag(end)
    viewer.release(end)
    settle(viewer)


def record(viewer):
    return viewer.playback.hud.record


def pixels(viewer):
    return viewer.playback.canvas.pixels.copy()


@contextlib.contextmanager
def virtual_screen():
    """The name of an X screen that exists in memory only."""
    if not shutil.which("Xvfb"):
        pytest.skip("Xvfb is not installed (Debian: apt-get install xvfb)")
    command = ["Xvfb", "-displayfd", "1", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    yield f":{server.stdout.readline().strip()}"
    server.terminate()
    server.wait()
