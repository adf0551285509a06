"""Viewers to drive, with and without a screen to show them on."""

import pytest

from agent.viewer.app import Viewer
from agent.viewer.canvas import pygame
from tests.agent.viewer.playing import playback, press, until, virtual_screen, watched


@pytest.fixture
def make_viewer(tmp_path):
    """Makes viewers that have not begun; closes them again."""
    made = []

    def making(**settings):
        made.append(Viewer(watched(playback(**settings)), tmp_path))
        return made[-1]

    yield making
    for viewer in made:
        viewer.playback.close()


@pytest.fixture
def open_viewer(make_viewer):
    """Makes viewers that have begun; nothing may go wrong behind them."""
    opened = []

    def opening(**settings):
        viewer = make_viewer(**settings)
        viewer.playback.start()
        opened.append(viewer)
        until(viewer, lambda: viewer.playback.canvas is not None)
        return viewer

    yield opening
    for viewer in opened:
        viewer.playback.close()
        assert viewer.playback.error is None


@pytest.fixture
def paused(open_viewer):
    """A viewer whose episode stands still at some step."""
    viewer = open_viewer()
    press(viewer, "space")
    return viewer


@pytest.fixture(scope="session")
def x_screen():
    with virtual_screen() as name:
        yield name


@pytest.fixture(params=["dummy", "x11"])
def screen(request, monkeypatch):
    """Where windows go in this test: SDL's dummy driver, or a real (virtual) X screen."""
    monkeypatch.setenv("SDL_VIDEODRIVER", request.param)
    if request.param == "x11":
        monkeypatch.setenv("DISPLAY", request.getfixturevalue("x_screen"))
    pygame.display.quit()
    yield request.param
    pygame.display.quit()
