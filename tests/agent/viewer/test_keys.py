"""What the keys do to a playback; no window is needed for it."""

import time

import imageio.v3 as imageio
import numpy as np

from agent.viewer.frame import HEIGHT, NOW, WIDTH
from agent.viewer.video import Recordings
from tests.agent.viewer.playing import pixels, press, record, settle, until


def test_space_pauses_and_goes_on(open_viewer):
    viewer = open_viewer()
    press(viewer, "space")
    assert viewer.view.paused
    count = viewer.playback.count
    time.sleep(0.3)  # three steps of the task
    settle(viewer)
    assert viewer.playback.count == count

    viewer.key("space")
    until(viewer, lambda: viewer.playback.count >= count + 3)
    assert not viewer.view.paused


def test_the_right_arrow_pauses_and_takes_one_step_at_a_time(open_viewer):
    viewer = open_viewer()
    press(viewer, "ArrowRight")
    step = record(viewer).step
    for expected in (step + 1, step + 2):
        press(viewer, "ArrowRight")
        assert record(viewer).step == expected
    assert viewer.pace.paused


def test_r_restarts_the_pair_and_n_goes_to_the_next(paused):
    start = paused.sequence._pairs[0].start
    press(paused, "ArrowRight")
    assert record(paused).step > 0

    press(paused, "r")
    assert (record(paused).pair, record(paused).step) == (0, 0)
    np.testing.assert_array_equal(record(paused).state, start)

    press(paused, "n")
    assert (record(paused).pair, record(paused).step) == (1, 0)


def test_g_draws_a_new_goal_with_fresh_time(paused):
    goal, step = record(paused).goal, record(paused).step
    paused.key("g")
    assert "goal" in paused.view.hint
    settle(paused)
    assert not np.array_equal(record(paused).goal, goal)
    assert record(paused).limit == step + 50


def test_p_switches_the_planner_off_and_on(paused):
    paused.key("p")
    press(paused, "ArrowRight")
    assert not paused.view.planning
    assert record(paused).thought.plan is None
    np.testing.assert_array_equal(record(paused).action, [0, 0])

    paused.key("p")
    press(paused, "ArrowRight")
    assert record(paused).thought.plan is not None


def test_p_says_so_where_there_is_no_planner(open_viewer):
    viewer = open_viewer(rule="expert")
    viewer.key("p")
    assert viewer.view.hint == "there is no planner: the agent is expert"
    assert viewer.view.planning


def test_m_switches_between_the_planners_of_a_model_with_proposals(open_viewer):
    viewer = open_viewer(model="tests.analytic_world:ProposingRoomWorld")
    press(viewer, "space")
    assert record(viewer).thought.plan.source == "search"
    found = []
    for name in ("guided", "lewm", "mppi", "propose", "shooting", "cem"):
        viewer.key("m")
        assert viewer.view.hint == f"planner {name} from the next plan on"
        for _ in range(6):  # a plan lasts for a block of five steps
            press(viewer, "ArrowRight")
        assert viewer.sequence.agent.planner.name == name
        plan = record(viewer).thought.plan
        found.append((plan.source, sorted(plan.costs)))
    assert found[0][1] == ["proposal", "search"]  # what the guard compared
    assert found[3] == ("proposal", ["proposal"])
    assert found[-1] == ("search", ["search"])


def test_m_says_so_where_there_is_nothing_to_switch_to(open_viewer):
    ruled = open_viewer(rule="expert")
    ruled.key("m")
    assert ruled.view.hint == "there is no planner: the agent is expert"


def test_c_hides_the_candidates(paused):
    paused.key("o")
    press(paused, "r")
    with_fan = pixels(paused)[NOW.y : NOW.bottom, NOW.x : NOW.right]
    press(paused, "c")
    without = pixels(paused)[NOW.y : NOW.bottom, NOW.x : NOW.right]
    assert not paused.view.candidates
    assert (with_fan != without).any(axis=-1).sum() > 100
    inner = slice(4, -4)  # inside the frame round the picture
    expected = paused.playback.renderer.picture(record(paused).state)
    np.testing.assert_array_equal(without[inner, inner], expected[inner, inner])


def test_tab_shows_the_present_as_it_was_imagined(paused):
    before = pixels(paused)
    press(paused, "Tab")
    after = pixels(paused)
    title = slice(NOW.y - 24, NOW.y - 4)
    assert paused.view.imagined
    assert (before[title, NOW.x : NOW.right] != after[title, NOW.x : NOW.right]).any()
    paused.key("Tab")
    assert not paused.view.imagined


def test_minus_and_equals_change_the_speed(paused):
    paused.key("=")
    assert paused.pace.speed == 2
    for _ in range(9):
        press(paused, "-")
    assert paused.pace.speed == paused.view.speed == 1 / 8


def test_plus_is_faster_too(paused):
    paused.key("+")
    assert paused.pace.speed == 2


def test_in_real_time_the_speed_cannot_be_changed(make_viewer):
    viewer = make_viewer(rule="zero", realtime=True)
    viewer.key("=")
    assert viewer.pace.speed == 1
    assert viewer.view.hint == "in real time the speed is the task's own"


def test_v_records_until_it_is_pressed_again(paused):
    paused.key("v")
    assert paused.view.recording
    for _ in range(3):
        press(paused, "ArrowRight")
    paused.key("v")
    assert not paused.view.recording
    assert [path.name for path in paused.saved] == ["qqworld-two-room-1.mp4"]
    assert imageio.imread(paused.saved[0]).shape == (3, HEIGHT, WIDTH, 3)
    assert paused.view.hint == f"saved the video {paused.saved[0]}"


def test_s_saves_a_screenshot(paused):
    shown = pixels(paused)
    paused.key("s")
    assert paused.saved[0].name == "qqworld-two-room-1.png"
    np.testing.assert_array_equal(imageio.imread(paused.saved[0]), shown)
    assert paused.view.hint == f"saved the screenshot {paused.saved[0]}"


def test_a_screenshot_while_a_video_runs_is_not_taken_for_the_video(paused):
    for key in ("v", "s", "v"):
        press(paused, key)
    assert paused.view.hint.startswith("saved the video")
    assert paused.view.hint.endswith(".mp4")


def test_recordings_have_a_folder_that_is_made_when_it_is_needed(tmp_path):
    kept = Recordings(tmp_path / "recordings", "two-room")
    assert not kept.folder.exists()
    assert kept.screenshot(np.zeros((8, 8, 3), np.uint8)) == tmp_path / "recordings" / "qqworld-two-room-1.png"


def test_a_folder_that_cannot_be_written_to_is_told_in_the_window(paused, tmp_path):
    (tmp_path / "file").touch()
    paused._recordings.folder = tmp_path / "file"
    paused.key("s")
    assert "the screenshot cannot be written to" in paused.view.hint
    paused.key("v")
    assert "a video cannot be written to" in paused.view.hint
    assert not paused.view.recording
    assert paused.saved == []


def test_o_hides_the_goal_s_outline(paused):
    press(paused, "r")
    shown = pixels(paused)[NOW.y : NOW.bottom, NOW.x : NOW.right]
    press(paused, "o")
    assert not paused.view.ghost
    assert (pixels(paused)[NOW.y : NOW.bottom, NOW.x : NOW.right] != shown).any(axis=-1).sum() > 50


def test_c_says_so_where_there_are_no_candidates(open_viewer):
    viewer = open_viewer(rule="expert")
    viewer.key("c")
    assert viewer.view.hint == "there are no candidates: the agent is expert"


def test_h_shows_the_help_and_hides_it(paused):
    plain = pixels(paused).mean()
    press(paused, "h")
    assert pixels(paused).mean() < 0.6 * plain
    press(paused, "h")
    assert pixels(paused).mean() > 0.9 * plain
