"""The window, driven by posted keys and mouse events, under SDL's dummy driver and on a real (virtual) X screen."""

import time

import imageio.v3 as imageio
import numpy as np
import pytest

from agent.viewer import overlay as projection
from agent.viewer.app import Viewer
from agent.viewer.canvas import pygame
from agent.viewer.frame import GOAL_PANE, HEIGHT, NOW, PANE, WIDTH
from agent.viewer.window import has_display, letterbox
from tests.agent.viewer.playing import playback, until, virtual_screen


@pytest.fixture(scope="module")
def x_screen():
    with virtual_screen() as name:
        yield name


@pytest.fixture(params=["dummy", "x11"])
def screen(request, monkeypatch):
    """Where windows go in this test."""
    monkeypatch.setenv("SDL_VIDEODRIVER", request.param)
    if request.param == "x11":
        monkeypatch.setenv("DISPLAY", request.getfixturevalue("x_screen"))
    pygame.display.quit()
    yield request.param
    pygame.display.quit()


@pytest.fixture
def open_viewer(screen, tmp_path):
    """Opens windows; closes them again."""
    opened = []

    def opening(**settings):
        viewer = Viewer(playback(**settings), tmp_path)
        assert pygame.display.get_driver() == screen
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
    """A window whose episode stands still at some step."""
    viewer = open_viewer()
    press(viewer, pygame.K_SPACE)
    settle(viewer)
    return viewer


def press(viewer, key):
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))
    viewer.tick()


def mouse(viewer, kind, point):
    """A mouse event at a point of the frame, which may be smaller in the window."""
    place = letterbox(pygame.display.get_window_size())
    at = np.array(place[:2]) + np.asarray(point) * place.w / WIDTH
    pygame.event.post(pygame.event.Event(kind, pos=tuple(at.round().astype(int).tolist()), button=1))
    viewer.tick()


def drag(viewer, start, end):
    mouse(viewer, pygame.MOUSEBUTTONDOWN, start)
    mouse(viewer, pygame.MOUSEMOTION, end)
    mouse(viewer, pygame.MOUSEBUTTONUP, end)


def settle(viewer, seconds=0.3):
    """Tick until nothing has come in for a while."""
    count, since = viewer.playback.count, time.perf_counter()
    while time.perf_counter() - since < seconds:
        viewer.tick()
        time.sleep(0.01)
        if viewer.playback.count != count:
            count, since = viewer.playback.count, time.perf_counter()


def step(viewer):
    """Take one step and wait for it."""
    count = viewer.playback.count
    press(viewer, pygame.K_RIGHT)
    until(viewer, lambda: viewer.playback.count > count)


def record(viewer):
    return viewer.playback.history.record


def frame_after(viewer, change):
    """The frame once a change of view has been drawn."""
    before = viewer.playback.canvas
    change()
    until(viewer, lambda: viewer.playback.canvas is not before)
    return viewer.playback.canvas.pixels


def test_space_pauses_and_goes_on(open_viewer):
    viewer = open_viewer()
    press(viewer, pygame.K_SPACE)
    settle(viewer)
    assert viewer.view.paused
    count = viewer.playback.count
    settle(viewer)
    assert viewer.playback.count == count

    press(viewer, pygame.K_SPACE)
    until(viewer, lambda: viewer.playback.count >= count + 3)
    assert not viewer.view.paused


def test_the_right_arrow_pauses_and_takes_one_step_at_a_time(open_viewer):
    viewer = open_viewer()
    press(viewer, pygame.K_RIGHT)
    settle(viewer)
    step = record(viewer).step
    for expected in (step + 1, step + 2):
        press(viewer, pygame.K_RIGHT)
        settle(viewer)
        assert record(viewer).step == expected
    assert viewer.pace.paused


def test_r_restarts_the_pair_and_n_goes_to_the_next(paused):
    start = paused.sequence._pairs[0].start
    press(paused, pygame.K_RIGHT)
    settle(paused)
    assert record(paused).step > 0

    press(paused, pygame.K_r)
    settle(paused)
    assert (record(paused).pair, record(paused).step) == (0, 0)
    np.testing.assert_array_equal(record(paused).state, start)

    press(paused, pygame.K_n)
    settle(paused)
    assert (record(paused).pair, record(paused).step) == (1, 0)


def test_g_draws_a_new_goal_with_fresh_time(paused):
    goal, step = record(paused).goal, record(paused).step
    press(paused, pygame.K_g)
    settle(paused)
    assert not np.array_equal(record(paused).goal, goal)
    assert record(paused).limit == step + 50
    assert "goal" in paused.view.hint


def test_p_switches_the_planner_off_and_on(paused):
    press(paused, pygame.K_p)
    press(paused, pygame.K_RIGHT)
    settle(paused)
    assert not paused.view.planning
    assert record(paused).thought.plan is None
    np.testing.assert_array_equal(record(paused).action, [0, 0])

    press(paused, pygame.K_p)
    press(paused, pygame.K_RIGHT)
    settle(paused)
    assert record(paused).thought.plan is not None


def test_p_says_so_where_there_is_no_planner(open_viewer):
    viewer = open_viewer(rule="expert")
    press(viewer, pygame.K_p)
    assert viewer.view.hint == "there is no planner: the agent is expert"
    assert viewer.view.planning


def test_m_switches_between_the_planners_of_a_model_with_proposals(open_viewer):
    viewer = open_viewer(model="tests.analytic_world:ProposingRoomWorld")
    press(viewer, pygame.K_SPACE)
    settle(viewer)
    assert record(viewer).thought.plan.source == "search"
    found = []
    for name in ("guided", "propose", "cem"):
        press(viewer, pygame.K_m)
        assert viewer.view.hint == f"planner {name} from the next plan on"
        for _ in range(6):  # a plan lasts for a block of five steps
            step(viewer)
        assert viewer.sequence.agent.planner.name == name
        plan = record(viewer).thought.plan
        found.append((plan.source, sorted(plan.costs)))
    assert found[0][1] == ["proposal", "search"]  # what the guard compared
    assert found[1:] == [("proposal", ["proposal"]), ("search", ["search"])]


def test_m_says_so_where_there_is_nothing_to_switch_to(open_viewer):
    viewer = open_viewer()
    press(viewer, pygame.K_m)
    assert viewer.view.hint == "cem is the only planner: this model has no proposals"
    ruled = open_viewer(rule="expert")
    press(ruled, pygame.K_m)
    assert ruled.view.hint == "there is no planner: the agent is expert"


def test_c_hides_the_candidates(paused):
    press(paused, pygame.K_r)
    settle(paused)
    with_fan = paused.playback.canvas.pixels[NOW.y : NOW.bottom, NOW.x : NOW.right].copy()
    pixels = frame_after(paused, lambda: press(paused, pygame.K_c))
    without = pixels[NOW.y : NOW.bottom, NOW.x : NOW.right]
    assert not paused.view.candidates
    assert (with_fan != without).any(axis=-1).sum() > 100
    inner = slice(4, -4)  # inside the frame round the picture
    expected = paused.playback.renderer.picture(record(paused).state)
    np.testing.assert_array_equal(without[inner, inner], expected[inner, inner])


def test_tab_shows_the_present_as_it_was_imagined(paused):
    before = paused.playback.canvas.pixels.copy()
    pixels = frame_after(paused, lambda: press(paused, pygame.K_TAB))
    title = slice(NOW.y - 24, NOW.y - 4)
    assert paused.view.imagined
    assert (before[title, NOW.x : NOW.right] != pixels[title, NOW.x : NOW.right]).any()
    press(paused, pygame.K_TAB)
    assert not paused.view.imagined


def test_minus_and_equals_change_the_speed(paused):
    press(paused, pygame.K_EQUALS)
    assert paused.pace.speed == 2
    for _ in range(9):
        press(paused, pygame.K_MINUS)
    assert paused.pace.speed == paused.view.speed == 1 / 8


def test_at_eight_times_the_speed_more_steps_are_taken(open_viewer):
    viewer = open_viewer(rule="zero")

    def steps_in_a_second():
        count, end = viewer.playback.count, time.perf_counter() + 1
        until(viewer, lambda: time.perf_counter() > end)
        return viewer.playback.count - count

    normal = steps_in_a_second()
    for _ in range(3):
        press(viewer, pygame.K_EQUALS)
    assert steps_in_a_second() > 1.5 * normal


def test_v_records_until_it_is_pressed_again(paused):
    press(paused, pygame.K_v)
    assert paused.view.recording
    for _ in range(3):
        press(paused, pygame.K_RIGHT)
        settle(paused)
    press(paused, pygame.K_v)
    assert not paused.view.recording
    assert [path.name for path in paused.saved] == ["qqworld-two-room-1.mp4"]
    assert imageio.imread(paused.saved[0]).shape == (3, HEIGHT, WIDTH, 3)


def test_s_saves_a_screenshot(paused):
    shown = paused.playback.canvas.pixels.copy()
    press(paused, pygame.K_s)
    assert paused.saved[0].name == "qqworld-two-room-1.png"
    np.testing.assert_array_equal(imageio.imread(paused.saved[0]), shown)


def test_h_shows_the_help_and_hides_it(paused):
    plain = paused.playback.canvas.pixels.mean()
    assert frame_after(paused, lambda: press(paused, pygame.K_h)).mean() < 0.6 * plain
    press(paused, pygame.K_h)
    settle(paused)
    assert paused.playback.canvas.pixels.mean() > 0.9 * plain


@pytest.mark.parametrize("key", [pygame.K_q, pygame.K_ESCAPE, None])
def test_q_escape_and_the_close_button_end_it(screen, tmp_path, key):
    viewer = Viewer(playback(), tmp_path)
    wanted = pygame.event.Event(pygame.QUIT) if key is None else pygame.event.Event(pygame.KEYDOWN, key=key)
    pygame.event.post(wanted)
    viewer.run()
    assert viewer.closed
    assert not pygame.display.get_init()


def test_it_can_be_left_in_the_middle_of_a_plan_against_the_clock(screen, tmp_path):
    viewer = Viewer(playback(model="tests.analytic_world:RoomWorld", realtime=True), tmp_path)
    viewer.sequence.agent.model.wrapped.slow_s = 0.3
    viewer.playback.start()
    until(viewer, lambda: viewer.playback.count >= 2)
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_q))
    viewer.tick()
    viewer.playback.close()
    assert viewer.closed
    assert viewer.playback.error is None


def test_a_drag_pushes_the_thing(paused):
    before = record(paused)
    drag(paused, (NOW.x + 100, NOW.y + 100), (NOW.x + 140, NOW.y + 80))
    settle(paused)
    pushed = record(paused).pushed
    expected = np.clip(before.state + np.array([40, -20]) * 224 / PANE, 0.06 * 224, 0.94 * 224) - before.state
    np.testing.assert_allclose(pushed, expected, atol=1.5)
    assert paused.view.arrow is None


def test_an_arrow_is_drawn_while_pushing_and_a_tremble_is_no_push(paused):
    mouse(paused, pygame.MOUSEBUTTONDOWN, (NOW.x + 100, NOW.y + 100))
    mouse(paused, pygame.MOUSEMOTION, (NOW.x + 160, NOW.y + 100))
    assert paused.view.arrow == pytest.approx((NOW.x + 100, NOW.y + 100, NOW.x + 160, NOW.y + 100), abs=1)
    count = paused.playback.count
    mouse(paused, pygame.MOUSEBUTTONUP, (NOW.x + 101, NOW.y + 100))
    settle(paused)
    assert paused.playback.count == count


def test_a_click_on_the_goal_places_it_there(paused):
    point = np.array([GOAL_PANE.x + 0.75 * PANE, GOAL_PANE.y + 0.5 * PANE])
    drag(paused, point, point)
    settle(paused)
    np.testing.assert_allclose(record(paused).goal, [0.75 * 224, 0.5 * 224], atol=1.5)


def test_in_pusht_the_t_is_dragged_and_the_wheel_turns_it(open_viewer):
    viewer = open_viewer(task="pusht", rule="zero", goal="100,100,300,300,0.5,0,0")
    press(viewer, pygame.K_SPACE)
    settle(viewer)
    at = np.array([GOAL_PANE.x, GOAL_PANE.y]) + np.array([310, 300]) / 512 * PANE
    drag(viewer, at, at + np.array([-30, 0]))
    settle(viewer)
    np.testing.assert_allclose(record(viewer).goal[:5], [100, 100, 300 - 30 * 512 / PANE, 300, 0.5], atol=3)

    viewer._turn(at, 3)  # the pointer cannot be put anywhere without a real screen
    settle(viewer)
    assert record(viewer).goal[4] == pytest.approx(0.5 + np.pi / 6, abs=0.01)


def test_a_task_without_a_floor_plan_answers_with_a_hint(paused, monkeypatch):
    monkeypatch.setattr(projection, "PLANS", {})
    monkeypatch.setattr(projection, "DRAGS", {})
    mouse(paused, pygame.MOUSEBUTTONDOWN, (NOW.x + 10, NOW.y + 10))
    assert "nothing can be pushed" in paused.view.hint
    mouse(paused, pygame.MOUSEBUTTONDOWN, (GOAL_PANE.x + 10, GOAL_PANE.y + 10))
    assert "cannot be placed" in paused.view.hint
    paused.playback.show([], paused.view)  # draws without candidates


def test_the_mouse_finds_its_place_in_a_window_of_another_size(paused):
    if pygame.display.get_driver() == "x11":
        pytest.skip("a window manager decides on sizes there")
    pygame.display.set_mode((WIDTH // 2, HEIGHT))  # the frame at half its size, with a quarter of the window above it
    point = np.array([GOAL_PANE.x + 0.25 * PANE, GOAL_PANE.y + 0.75 * PANE]) / 2 + [0, HEIGHT / 4]
    for kind in (pygame.MOUSEBUTTONDOWN, pygame.MOUSEBUTTONUP):
        paused.handle(pygame.event.Event(kind, pos=tuple(point), button=1))
    settle(paused)
    np.testing.assert_allclose(record(paused).goal, [0.25 * 224, 0.75 * 224], atol=2)


def test_the_window_ends_with_its_last_episode(screen, tmp_path):
    viewer = Viewer(playback(episodes=1, steps=3), tmp_path)
    viewer.run()
    assert not viewer.closed
    assert len(viewer.playback.history.results) == 1


def test_what_goes_wrong_behind_the_window_is_raised_in_front_of_it(screen, tmp_path):
    viewer = Viewer(playback(model="tests.analytic_world:FailingWorld", goal="60,60", seed=1), tmp_path)
    viewer.pace.change_speed(8)
    with pytest.raises(ArithmeticError, match="beyond me"):
        viewer.run()


def test_a_dummy_screen_is_no_display(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    assert not has_display()
    monkeypatch.delenv("SDL_VIDEODRIVER")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert not has_display()
