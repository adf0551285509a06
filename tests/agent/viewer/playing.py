"""A playback in a blink: Two-Room, a small planner and the simulator as world model; and a screen to show it on."""

import contextlib
import shutil
import subprocess
import time

import pytest

from agent.episodes.sequence import Settings
from agent.factory import make_agent, make_playback

SMALL = ("candidates=16", "iterations=2", "cost=sum")


def playback(task="two-room", model="simulator", rule=None, goal="pair", realtime=False, **settings):
    agent = make_agent(task, model, rule, plan=SMALL, realtime=realtime)
    return make_playback(task, agent, goal, Settings(realtime=realtime, **settings))


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


def until(viewer, happened, seconds=20.0):
    """Tick the window until something `happened`."""
    end = time.perf_counter() + seconds
    while not happened():
        assert time.perf_counter() < end, "it did not happen"
        assert viewer.playback.error is None, viewer.playback.error
        viewer.tick()
        time.sleep(0.005)
