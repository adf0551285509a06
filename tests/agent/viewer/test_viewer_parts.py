"""What the window is made of: quantiles, projections, imagined pictures, goals, sessions, films and whole frames."""

import dataclasses
import itertools
import json
import threading
import time
from pathlib import Path

import cv2
import imageio.v3 as imageio
import numpy as np
import pytest

import envs
from agent import planning as planners
from agent.episodes import goals
from agent.episodes.sequence import StoppableModel, Stopped
from agent.planning.base import Problem
from agent.viewer import overlay as projection
from agent.viewer.frame import HEIGHT, KEYS, WIDTH, View, chosen
from agent.viewer.headless import run_headless
from agent.viewer.hud_state import HudState
from agent.viewer.latent_images import StoredFrames, imagine
from agent.viewer.panels import nice_ceiling
from agent.viewer.qq_plot import QQ, chi_squared_quantile
from agent.viewer.threads import Pace
from agent.viewer.video import Video
from envs import BadInput
from tests.agent.viewer.playing import playback
from tests.analytic_world import PointWorld, ProposingWorld

STORED = Path(__file__).parents[2] / "stored"
PIXELS = "tests.analytic_world:PixelRoomWorld"

# ---- quantiles -----------------------------------------------------------------------------------------------------


def test_gaussian_latents_lie_on_the_line_with_a_tenth_of_them_in_the_tail():
    qq = QQ.of(np.random.default_rng(0).standard_normal((4000, 32)))
    assert np.abs(qq.projected - qq.gaussian).max() < 0.35
    assert np.abs(qq.projected.mean(axis=0) - qq.gaussian).max() < 0.05
    assert qq.tail_rate == pytest.approx(0.1, abs=0.02)


def test_latents_that_are_too_wide_leave_the_line_unless_they_are_standardised():
    latents = 3 * np.random.default_rng(0).standard_normal((500, 8)) + 1
    assert QQ.of(latents).tail_rate > 0.5
    assert QQ.of(latents, standardise=True).tail_rate == pytest.approx(0.1, abs=0.05)


def test_collapsed_latents_have_no_spread_and_no_tail():
    qq = QQ.of(np.zeros((50, 8)))
    assert not qq.projected.any()
    assert qq.tail_rate == 0


@pytest.mark.parametrize(("degrees", "true"), [(2, 4.605), (8, 13.362), (192, 217.37)])
def test_the_chi_squared_quantile_is_near_the_true_one(degrees, true):
    assert chi_squared_quantile(0.9, degrees) == pytest.approx(true, rel=0.01)


# ---- projections ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two-room", "pusht"])
def test_the_fan_leads_where_the_simulator_goes_on_a_free_floor(name):
    task, rng = envs.make(name), np.random.default_rng(1)
    state = np.array([60.0, 120.0]) if name == "two-room" else np.array([250, 250, 60, 60, 0.3, 40, -20.0])
    actions = rng.uniform(-0.5, 0.5, (3, 10, 2))
    shares = projection.paths(task, state, actions)
    for path, sequence in zip(shares, actions, strict=True):
        reached = state
        for action in sequence:
            reached = task.advance(reached, action)
        np.testing.assert_allclose(path[-1] * projection.PLANS[name].side, reached[:2], atol=1e-6)


def test_a_task_without_a_floor_plan_has_no_fan():
    class Unknown:
        name = "unknown"

    assert projection.paths(Unknown(), np.zeros(2), np.zeros((1, 1, 2))) is None
    assert projection.grab(Unknown(), np.zeros(2), np.zeros(2)) is None
    assert projection.turned(Unknown(), np.zeros(2), 1.0) is None
    assert projection.displacement(Unknown(), np.zeros(2), np.zeros(2)) is None


@pytest.mark.parametrize("name", ["two-room", "pusht", "reacher"])
def test_a_drag_moves_what_the_goal_is_about(name):
    task = envs.make(name)
    state = task.start(np.random.default_rng(0))
    push = projection.displacement(task, state, np.array([0.2, 0.2]))
    assert push.shape == (len(task.movable),)
    after = state.copy()
    after[list(task.movable)] += push
    assert task.moved(state, after)


# ---- imagined pictures ---------------------------------------------------------------------------------------------


def test_the_nearest_stored_frame_looks_like_the_latent():
    from tests.analytic_world import PixelRoomWorld

    task = envs.make("two-room")
    stored = StoredFrames(PixelRoomWorld(None))
    stored.wait(60)
    wanted = np.stack([task.start(np.random.default_rng(seed)) for seed in range(20)])
    found = stored.states(wanted)  # a latent of this world is the position
    assert np.median(np.linalg.norm(found - wanted, axis=1)) < 16
    assert stored.note() == "nearest of 400 stored frames"
    assert stored.latents().shape == (400, 2)
    stored.close()


def test_what_was_seen_becomes_a_stored_frame():
    run = playback(model=PIXELS, steps=3, episodes=1)
    run.renderer.latent_images.wait(60)
    for record in run.sequence:
        run.show([record], View())
    nearest = run.renderer.latent_images.states(record.thought.latent[None])[0]
    np.testing.assert_array_equal(nearest, record.state)
    run.close()


def test_the_simulator_imagines_states_exactly():
    run = playback(steps=6, episodes=1)
    records = list(run.sequence)
    imagined = imagine(run.sequence.agent.model).states(records[0].thought.plan.latents)
    np.testing.assert_array_equal(imagined[0], records[5].state)


# ---- goals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two-room", "pusht"])
def test_a_picture_of_a_goal_is_recognised(name, tmp_path):
    task = envs.make(name)
    state = task.start(np.random.default_rng(7))
    wide = cv2.copyMakeBorder(task.picture(300, state), 0, 0, 40, 40, cv2.BORDER_CONSTANT)
    imageio.imwrite(tmp_path / "goal.png", wide)
    source = goals.parse(str(tmp_path / "goal.png"), task)
    assert task.success(source.pictured, state)
    assert source.picture.shape == (64, 64, 3)


def test_a_picture_model_is_shown_the_picture_itself(tmp_path):
    task = envs.make("two-room")
    imageio.imwrite(tmp_path / "goal.png", task.draw(np.array([170.0, 150.0])))
    run = playback(model=PIXELS, goal=str(tmp_path / "goal.png"), steps=2, episodes=1)
    record = next(iter(run.sequence))
    np.testing.assert_allclose(record.thought.goal_latent, [170, 150], atol=1)
    np.testing.assert_allclose(record.goal, [170, 150], atol=4)
    run.close()


def test_goals_come_from_the_pair_at_random_or_in_numbers():
    task, pair = envs.make("two-room"), envs.pairs("two-room", 0, 1)[0]
    np.testing.assert_array_equal(goals.parse("pair", task)(task, pair, 0, 0), pair.goal)
    np.testing.assert_array_equal(goals.parse("120,60", task)(task, pair, 0, 0), [120, 60])
    at_random = goals.parse("random", task)
    np.testing.assert_array_equal(at_random(task, pair, 0, 0), at_random(task, pair, 0, 0))
    assert not np.array_equal(at_random(task, pair, 0, 0), at_random(task, pair, 0, 1))


@pytest.mark.parametrize(
    ("goal", "sentence"),
    [("1,2,3", "a goal of two-room has 2 numbers"), ("nowhere.png", "--goal is pair, random, a picture or the 2")],
)
def test_a_goal_that_makes_no_sense_is_refused(goal, sentence):
    with pytest.raises(BadInput, match=sentence):
        goals.parse(goal, envs.make("two-room"))


def test_a_file_that_is_no_picture_is_refused(tmp_path):
    (tmp_path / "goal.png").write_text("not a picture")
    with pytest.raises(BadInput, match="not a picture that can be read"):
        goals.parse(str(tmp_path / "goal.png"), envs.make("two-room"))


# ---- sessions ------------------------------------------------------------------------------------------------------


def lines(path):
    kept = ("pair", "first_hit", "final", "steps", "actions", "final_distance")
    return [{key: json.loads(line)[key] for key in kept} for line in path.read_text().splitlines()]


def test_threads_and_drawing_do_not_change_the_episodes(tmp_path):
    plain, filmed, shown = (tmp_path / f"{name}.jsonl" for name in ("plain", "filmed", "shown"))
    list(playback(episodes=2, steps=10, log=plain).sequence)
    run_headless(playback(episodes=2, steps=10, log=filmed))
    beside = playback(episodes=2, steps=10, log=shown)
    for _ in range(3):
        beside.pace.change_speed(2)
    beside.start()
    while not beside.over:
        time.sleep(0.01)
    beside.close()
    assert beside.error is None
    assert len(lines(plain)) == 2
    assert lines(plain) == lines(filmed) == lines(shown)


def test_an_episode_that_was_left_is_not_logged_and_one_by_hand_does_not_count(tmp_path):
    run = playback(episodes=3, steps=4, log=tmp_path / "log.jsonl")
    history = HudState(2)
    for record in run.sequence:
        history.add(record)
        if record.pair == 0 and record.step == 2:
            run.sequence.next_pair()
        if record.pair == 1 and record.step == 1:
            run.sequence.push(np.array([5.0, 0.0]))
    assert [line["pair"] for line in lines(tmp_path / "log.jsonl")] == [1, 2]
    assert list(history.results) == [2]


def test_a_goal_at_the_last_step_gives_fresh_time():
    run = playback(episodes=1, steps=4)
    records = []
    for record in run.sequence:
        records.append(record)
        if record.step == 4:
            run.sequence.aim(np.array([60.0, 60.0]))
    assert records[-1].step == records[-1].limit == 8


def test_a_leash_stops_a_model_and_asks_it_one_at_a_time():
    inside, most, lock = 0, 0, threading.Lock()

    class Model:
        task = "two-room"

        def encode(self, observations):
            nonlocal inside, most
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.02)
            with lock:
                inside -= 1
            return observations

        rollout = None

    stoppable = StoppableModel(Model())
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


def test_a_pace_keeps_its_rate_and_lets_go_when_it_is_stopped():
    pace = Pace(hz=50)
    started = time.perf_counter()
    for _ in range(10):
        pace.wait()
    assert 0.15 < time.perf_counter() - started < 2
    pace.pause(True)
    waiting = threading.Thread(target=pace.wait)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    pace.stop()
    waiting.join(5)
    assert not waiting.is_alive()


def test_in_real_time_the_world_does_not_wait_for_the_drawing(tmp_path):
    run = playback(model="tests.analytic_world:RoomWorld", episodes=1, steps=15, realtime=True)
    run.record(Video(tmp_path / "film.mp4", 10))
    run_headless(run)
    run.close()
    assert run.history.record.step == 15
    assert run.history.record.clock is not None
    assert imageio.imread(tmp_path / "film.mp4").shape == (16, HEIGHT, WIDTH, 3)


# ---- films ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("film.xyz", "give it one of the endings"), ("no/film.mp4", "the folder .*no does not exist")],
)
def test_a_film_that_cannot_be_written_is_refused(tmp_path, name, sentence):
    with pytest.raises(BadInput, match=sentence):
        Video(tmp_path / name, 10)


def test_a_film_may_be_a_gif(tmp_path):
    with Video(tmp_path / "film.gif", 10) as video:
        for shade in (0, 255):
            video.add(np.full((20, 20, 3), shade, np.uint8))
    assert len(imageio.imread(tmp_path / "film.gif")) == 2


@pytest.mark.parametrize(("value", "ceiling"), [(0.0, 1.0), (7.3, 8.0), (0.021, 0.03), (101.0, 150.0), (2.0, 2.0)])
def test_axes_end_at_round_numbers(value, ceiling):
    assert nice_ceiling(value) == pytest.approx(ceiling)


# ---- whole frames --------------------------------------------------------------------------------------------------


def frame(task, view=View(), **settings):  # noqa: B008  (a View is frozen)
    """The frame at step 7, with all milliseconds made up."""
    run = playback(task=task, **settings)
    for record in itertools.islice(run.sequence, 8):
        calm = dataclasses.replace(record, ms={**record.ms, **({"plan": 42.0} if "plan" in record.ms else {})})
        run.show([calm], view)
    run.close()
    return run.canvas.pixels


def unlike(picture, stored):
    """The share of pixels that differ by more than rounding and fonts explain."""
    return float((np.abs(picture.astype(int) - stored.astype(int)).max(axis=-1) > 48).mean())


@pytest.mark.parametrize("task", ["two-room", "pusht"])
def test_a_frame_is_like_the_stored_one(task):
    stored = imageio.imread(STORED / f"frame-{task}.png")
    assert unlike(frame(task), stored) < 0.005


def test_another_frame_is_not_like_the_stored_one():
    stored = imageio.imread(STORED / "frame-two-room.png")
    assert unlike(frame("two-room", View(candidates=False, imagined=True)), stored) > 0.005
    assert unlike(frame("two-room", seed=1), stored) > 0.005


def test_the_same_history_gives_the_same_frame():
    np.testing.assert_array_equal(frame("two-room"), frame("two-room"))


def test_a_rule_has_a_frame_without_latents_and_plans():
    assert frame("two-room", rule="expert").shape == (HEIGHT, WIDTH, 3)


def test_the_window_says_what_the_actions_come_from_and_what_the_guard_compared():
    def plan(name, world):
        problem = Problem(np.zeros((1, 2)), np.empty((0, 10)), np.array([2.0, -1.0]), np.random.default_rng(0))
        return planners.make(name)(world, [problem])[0]

    assert chosen(None) == "-"
    assert chosen(plan("cem", PointWorld())).startswith("search ")
    assert chosen(plan("propose", ProposingWorld())).startswith("proposal ")
    guarded = plan("guided", ProposingWorld(skill=-1))
    assert chosen(guarded) == f"search {guarded.cost:.3g}, not proposal {guarded.costs['proposal']:.3g}"
    assert ("M", "another planner: cem, guided, propose") in KEYS


def store():
    """Draw the stored frames anew: python tests/test_viewer_parts.py"""
    for task in ("two-room", "pusht"):
        imageio.imwrite(STORED / f"frame-{task}.png", frame(task))


if __name__ == "__main__":
    store()
