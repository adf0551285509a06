"""Episodes of a log, found again and played again."""

import dataclasses
import json

import numpy as np
import pytest

from agent.episodes.goals import parse_goal
from agent.episodes.outcome import append_line
from agent.episodes.replay import RecordedAgent, read_episodes
from agent.episodes.sequence import EpisodeSequence, SequenceSettings
from agent.episodes.settings import EpisodeSettings
from agent.factory import make_agent, make_replay_agent, make_task
from envs import BadInput

WORLD = "tests.analytic_world:RoomWorld"
HOW = EpisodeSettings("two-room", steps=12, plan=("candidates=16", "iterations=2", "cost=sum"))


def sequence(agent, **settings):
    task = make_task("two-room", agent.model)
    return EpisodeSequence(task, agent, parse_goal("pair", task), SequenceSettings(HOW, **settings))


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Three episodes of a model, the second with a push, and one of a rule; as an evaluation logs them."""
    path = tmp_path_factory.mktemp("log") / "episodes.jsonl"
    plain = path.with_name("plain.jsonl")
    played = sequence(make_agent(HOW, WORLD), seed=3, episodes=3, log=plain)
    for record in played:
        if (record.pair, record.step) == (1, 4):
            played.push(np.array([6.0, -3.0]))
    list(sequence(make_agent(HOW, WORLD, "random"), seed=3, episodes=1, log=plain))
    for number, line in enumerate(plain.read_text().splitlines()):
        append_line(path, {"subject": WORLD if number < 3 else "random"} | json.loads(line) | {"success": number == 2})
    return path


def test_a_line_is_picked_by_outcome_by_number_and_by_pair(log):
    def pairs(pick, subject=WORLD):
        return [(one.seed, one.pair) for one in read_episodes(log, subject, pick)]

    assert pairs("all") == [(3, 0), (3, 1), (3, 2)]
    assert pairs("failed") == [(3, 0), (3, 1)]
    assert pairs("reached") == [(3, 2)]
    assert pairs("2") == pairs("3/1") == [(3, 1)]
    assert pairs("4") == pairs("all", "random") == [(3, 0)]


@pytest.mark.parametrize(
    ("subject", "pick", "sentence"),
    [
        (WORLD, "best", "--pick is all, failed, reached, the number of a line"),
        (WORLD, "3/9", "holds no episode that --pick 3/9 names"),
        ("lewm.onnx", "all", "holds no episodes of lewm.onnx: it has those of random, tests.analytic_world:RoomWorld"),
    ],
)
def test_what_is_not_in_the_log_is_said_in_a_sentence(log, subject, pick, sentence):
    with pytest.raises(BadInput, match=sentence):
        read_episodes(log, subject, pick)


def test_a_file_without_episodes_is_not_a_log(tmp_path):
    with pytest.raises(BadInput, match="there is no log"):
        read_episodes(tmp_path / "no.jsonl", WORLD)
    (tmp_path / "metrics.jsonl").write_text('{"loss": 1}\n')
    with pytest.raises(BadInput, match="holds no episodes"):
        read_episodes(tmp_path / "metrics.jsonl", WORLD)


def test_the_same_episode_is_played_again_with_the_plan_of_each_step(log):
    first = list(sequence(make_agent(HOW, WORLD), seed=3, episodes=1))
    logged = read_episodes(log, WORLD)
    again = list(sequence(make_replay_agent(HOW, WORLD), episodes=1, replay=tuple(logged)))
    for before, after in zip(first, again, strict=True):
        np.testing.assert_array_equal(before.state, after.state)
        np.testing.assert_array_equal(before.thought.plan.actions, after.thought.plan.actions)
    assert again[0].agent == "replay"
    assert (again[0].seed, again[0].pair) == (3, 0)


def test_pushes_are_played_again_too(log):
    logged = read_episodes(log, WORLD, "3/1")
    again = list(sequence(make_replay_agent(HOW, WORLD), episodes=1, replay=tuple(logged)))
    np.testing.assert_allclose(again[5].pushed, [6.0, -3.0])
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert again[-1].distance == pytest.approx(lines[1]["final_distance"])


def test_a_rule_is_replayed_by_its_actions(log):
    logged = read_episodes(log, "random")
    again = list(sequence(RecordedAgent(), episodes=1, replay=tuple(logged)))
    np.testing.assert_allclose([record.action for record in again[:-1]], logged[0].actions)
    assert again[-1].distance == pytest.approx(json.loads(log.read_text().splitlines()[3])["final_distance"])


def test_picked_episodes_follow_one_another_and_begin_again(log):
    run = sequence(make_replay_agent(HOW, WORLD), replay=tuple(read_episodes(log, WORLD, "failed")))
    begun = []
    for record in run:
        if record.step == 0:
            begun.append(record.pair)
        if len(begun) == 3:
            break
    assert begun == [0, 1, 0]


def test_another_goal_hands_over_to_the_planner(log):
    run = sequence(make_replay_agent(HOW, WORLD), episodes=1, replay=tuple(read_episodes(log, WORLD)))
    logged = run.settings.replay[0].actions
    for record in run:
        if record.step == 3:
            run.aim(np.array([40.0, 190.0]))
        if record.step == 6:
            assert not np.allclose(record.action, logged[6])
            break


def test_an_episode_that_goes_otherwise_than_its_log_is_told(log):
    logged = dataclasses.replace(read_episodes(log, WORLD)[0], first_hit=1)
    with pytest.warns(UserWarning, match="pair 0 of seed 3 went otherwise than the log says"):
        list(sequence(make_replay_agent(HOW, WORLD), episodes=1, replay=(logged,)))


def test_a_sequence_begins_with_the_pair_that_was_asked_for():
    run = sequence(make_agent(HOW, WORLD), seed=3, episodes=2, pair=5)
    assert sorted({record.pair for record in run}) == [5, 6]
