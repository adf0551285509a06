"""The window, driven by posted events, under SDL's dummy driver and on a real (virtual) X screen."""

import time

import numpy as np
import pytest

from agent.viewer.canvas import Canvas, pygame
from agent.viewer.controls import KEYS
from agent.viewer.frame import GOAL_PANE, HEIGHT, NOW, PANE, WIDTH
from agent.viewer.window import Window, has_display, letterbox
from tests.agent.viewer.playing import press, record, settle, until

CODES = {
    pygame.K_SPACE: "space",
    pygame.K_RIGHT: "ArrowRight",
    pygame.K_LEFT: "ArrowLeft",
    pygame.K_UP: "ArrowUp",
    pygame.K_DOWN: "ArrowDown",
    pygame.K_LEFTBRACKET: "[",
    pygame.K_RIGHTBRACKET: "]",
    pygame.K_o: "o",
    pygame.K_r: "r",
    pygame.K_n: "n",
    pygame.K_g: "g",
    pygame.K_p: "p",
    pygame.K_m: "m",
    pygame.K_c: "c",
    pygame.K_TAB: "Tab",
    pygame.K_MINUS: "-",
    pygame.K_EQUALS: "=",
    pygame.K_PLUS: "+",
    pygame.K_KP_PLUS: "+",
    pygame.K_KP_MINUS: "-",
    pygame.K_v: "v",
    pygame.K_s: "s",
    pygame.K_h: "h",
    pygame.K_q: "q",
    pygame.K_ESCAPE: "Escape",
}


def post(kind, **values):
    pygame.event.post(pygame.event.Event(kind, **values))


def mouse(window, kind, point, button=1):
    """A mouse event at a point of the frame, which may be smaller in the window.

    It does not go through the queue, where a real screen has events of its own pointer.
    """
    place = letterbox(pygame.display.get_window_size())
    at = np.array(place[:2]) + np.asarray(point) * place.w / WIDTH
    window.handle(pygame.event.Event(kind, pos=tuple(at.round().astype(int).tolist()), button=button))


@pytest.fixture
def window(screen, open_viewer):
    opened = Window(open_viewer())
    assert pygame.display.get_driver() == screen
    return opened


def test_every_key_of_the_table_arrives_by_its_name(window, monkeypatch):
    heard = []
    monkeypatch.setattr(window.viewer, "key", heard.append)
    for code in CODES:
        post(pygame.KEYDOWN, key=code)
    window.tick()
    assert heard == list(CODES.values())
    assert set(heard) == set(KEYS)


def test_a_key_in_the_window_does_what_the_table_says(window):
    post(pygame.KEYDOWN, key=pygame.K_SPACE)
    window.tick()
    assert window.viewer.view.paused


def test_mouse_events_arrive_in_pixels_of_the_frame(window, monkeypatch):
    heard = []
    for name in ("press", "drag", "release", "wheel"):
        monkeypatch.setattr(window.viewer, name, lambda *values, name=name: heard.append((name, *values)))
    for button in (1, 3):  # the right button means nothing
        mouse(window, pygame.MOUSEBUTTONDOWN, (NOW.x + 100, NOW.y + 100), button)
        mouse(window, pygame.MOUSEBUTTONUP, (NOW.x + 140, NOW.y + 80), button)
    mouse(window, pygame.MOUSEMOTION, (NOW.x + 120, NOW.y + 90))
    monkeypatch.setattr(pygame.mouse, "get_pos", lambda: letterbox(pygame.display.get_window_size())[:2])
    window.handle(pygame.event.Event(pygame.MOUSEWHEEL, x=0, y=-2))
    points = {name: point for name, point, *_ in heard}
    assert [name for name, *_ in heard] == ["press", "release", "drag", "wheel"]
    np.testing.assert_allclose(points["press"], (NOW.x + 100, NOW.y + 100), atol=1)
    np.testing.assert_allclose(points["drag"], (NOW.x + 120, NOW.y + 90), atol=1)
    np.testing.assert_allclose(points["release"], (NOW.x + 140, NOW.y + 80), atol=1)
    np.testing.assert_allclose(points["wheel"], (0, 0), atol=1)
    assert heard[-1][2] == -2


def test_a_drag_in_the_window_pushes_the_goal_object(window):
    press(window.viewer, "space")
    before = record(window.viewer)
    mouse(window, pygame.MOUSEBUTTONDOWN, (NOW.x + 100, NOW.y + 100))
    mouse(window, pygame.MOUSEMOTION, (NOW.x + 140, NOW.y + 80))
    assert window.viewer.view.arrow == pytest.approx((NOW.x + 100, NOW.y + 100, NOW.x + 140, NOW.y + 80), abs=1)
    mouse(window, pygame.MOUSEBUTTONUP, (NOW.x + 140, NOW.y + 80))
    settle(window.viewer)
    expected = np.clip(before.state + np.array([40, -20]) * 224 / PANE, 0.06 * 224, 0.94 * 224) - before.state
    np.testing.assert_allclose(record(window.viewer).pushed, expected, atol=1.5)


def test_the_mouse_finds_its_place_in_a_window_of_another_size(window):
    if pygame.display.get_driver() == "x11":
        pytest.skip("a window manager decides on sizes there")
    press(window.viewer, "space")
    pygame.display.set_mode((WIDTH // 2, HEIGHT))  # the frame at half its size, with a quarter of the window above it
    point = np.array([GOAL_PANE.x + 0.25 * PANE, GOAL_PANE.y + 0.75 * PANE]) / 2 + [0, HEIGHT / 4]
    for kind in (pygame.MOUSEBUTTONDOWN, pygame.MOUSEBUTTONUP):
        window.handle(pygame.event.Event(kind, pos=tuple(point), button=1))
    settle(window.viewer)
    np.testing.assert_allclose(record(window.viewer).goal, [0.25 * 224, 0.75 * 224], atol=2)


def test_a_large_window_is_drawn_at_its_size(window, tmp_path):
    if pygame.display.get_driver() == "x11":
        pytest.skip("a window manager decides on sizes there")
    viewer = window.viewer
    press(viewer, "space")
    viewer.key("v")
    pygame.display.set_mode((WIDTH * 3 // 2, HEIGHT * 3 // 2))
    viewer.key("ArrowRight")
    until_drawn = time.perf_counter() + 60
    while viewer.playback.canvas.pixels.shape[1] != WIDTH * 3 // 2:
        assert time.perf_counter() < until_drawn
        window.tick()
    viewer.key("v")
    assert viewer.playback.canvas.pixels.shape == (HEIGHT * 3 // 2, WIDTH * 3 // 2, 3)


@pytest.mark.parametrize("size", [(1140, 780), (1139, 1000), (2000, 777), (333, 999), (1920, 1080)])
def test_frames_are_drawn_in_the_size_in_which_they_are_shown(size):
    place = letterbox(size)
    assert Canvas((WIDTH, HEIGHT), place.w / WIDTH).surface.get_size() == place[2:]


@pytest.mark.parametrize("key", [pygame.K_q, pygame.K_ESCAPE, None])
def test_q_escape_and_the_close_button_end_it(screen, make_viewer, key):
    window = Window(make_viewer())
    if key is None:
        post(pygame.QUIT)
    else:
        post(pygame.KEYDOWN, key=key)
    window.run()
    assert window.viewer.closed
    assert not pygame.display.get_init()


def test_it_can_be_left_in_the_middle_of_a_plan_against_the_clock(screen, make_viewer):
    window = Window(make_viewer(model="tests.analytic_world:RoomWorld", realtime=True))
    viewer = window.viewer
    viewer.sequence.agent.model.wrapped.slow_s = 0.3
    viewer.playback.start()
    until(viewer, lambda: viewer.playback.count >= 2)
    post(pygame.KEYDOWN, key=pygame.K_q)
    window.tick()
    viewer.playback.close()
    assert viewer.closed
    assert viewer.playback.error is None


def test_the_window_ends_with_its_last_episode(screen, make_viewer):
    window = Window(make_viewer(episodes=1, steps=3))
    window.run()
    assert not window.viewer.closed
    assert len(window.viewer.playback.hud.results) == 1


def test_what_goes_wrong_behind_the_window_is_raised_in_front_of_it(screen, make_viewer):
    window = Window(make_viewer(model="tests.analytic_world:FailingWorld", goal="60,60", seed=1))
    window.viewer.pace.change_speed(8)
    with pytest.raises(ArithmeticError, match="beyond me"):
        window.run()


def test_a_dummy_screen_is_no_display(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    assert not has_display()
    monkeypatch.delenv("SDL_VIDEODRIVER")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert not has_display()
