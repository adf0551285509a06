"""Where goals come from: the pair, chance, a picture or numbers."""

import cv2
import imageio.v3 as imageio
import numpy as np
import pytest

import envs
from agent.episodes.goals import parse_goal
from envs import BadInput
from tests.agent.viewer.playing import playback

PIXELS = "tests.analytic_world:PixelRoomWorld"


@pytest.mark.parametrize("name", ["two-room", "pusht"])
def test_a_picture_of_a_goal_is_recognised(name, tmp_path):
    task = envs.make(name)
    state = task.start(np.random.default_rng(7))
    wide = cv2.copyMakeBorder(task.picture(300, state), 0, 0, 40, 40, cv2.BORDER_CONSTANT)
    imageio.imwrite(tmp_path / "goal.png", wide)
    source = parse_goal(str(tmp_path / "goal.png"), task)
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
    np.testing.assert_array_equal(parse_goal("pair", task)(task, pair, 0, 0), pair.goal)
    np.testing.assert_array_equal(parse_goal("120,60", task)(task, pair, 0, 0), [120, 60])
    at_random = parse_goal("random", task)
    np.testing.assert_array_equal(at_random(task, pair, 0, 0), at_random(task, pair, 0, 0))
    assert not np.array_equal(at_random(task, pair, 0, 0), at_random(task, pair, 0, 1))


@pytest.mark.parametrize(
    ("goal", "sentence"),
    [("1,2,3", "a goal of two-room has 2 numbers"), ("nowhere.png", "--goal is pair, random, a picture or the 2")],
)
def test_a_goal_that_makes_no_sense_is_refused(goal, sentence):
    with pytest.raises(BadInput, match=sentence):
        parse_goal(goal, envs.make("two-room"))


def test_a_file_that_is_no_picture_is_refused(tmp_path):
    (tmp_path / "goal.png").write_text("not a picture")
    with pytest.raises(BadInput, match="not a picture that can be read"):
        parse_goal(str(tmp_path / "goal.png"), envs.make("two-room"))
