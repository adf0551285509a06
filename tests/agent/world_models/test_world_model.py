"""World models as a planner sees them: the simulator as one, and what a name on the command line finds."""

import numpy as np
import pytest

import envs
from agent.episodes.agents import ModelAgent
from agent.episodes.episode import Episode
from agent.planning import make
from agent.world_models import registry as world_model
from agent.world_models.simulator import SimulatorWorldModel


@pytest.mark.parametrize("name", envs.TASKS)
def test_a_rollout_of_the_simulator_is_what_the_environment_does(name):
    task, env = envs.make(name), envs.make(name)
    model = SimulatorWorldModel(task, action_block=2)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (3, 4, 2 * model.action_dim)).astype(np.float32)
    starts = [env.start(rng) for _ in range(3)]

    latents = model.rollout(model.encode(np.stack(starts))[:, None], np.empty((3, 0, 2 * model.action_dim)), actions)

    for start, plan, imagined in zip(starts, actions, latents, strict=True):
        env.set_state(start)
        for block, latent in zip(plan, imagined, strict=True):
            for action in block.reshape(2, -1):
                env.set_state(env.advance(env.state(), np.clip(action.astype(np.float64), -1, 1)))
            np.testing.assert_array_equal(latent[model.cost_size :], env.state())
            np.testing.assert_array_equal(latent[: model.cost_size], env.features(env.state()))


def test_one_context_serves_all_candidates():
    model = SimulatorWorldModel(envs.make("two-room"))
    context, actions = (
        model.encode(np.array([[50.0, 60.0]]))[:, None],
        np.random.default_rng(0).uniform(-1, 1, (4, 2, 10)),
    )
    shared = model.rollout(context, np.empty((1, 0, 10)), actions)
    repeated = model.rollout(np.repeat(context, 4, axis=0), np.empty((4, 0, 10)), actions)
    np.testing.assert_array_equal(shared, repeated)


def test_actions_beyond_the_box_act_like_the_box():
    model = SimulatorWorldModel(envs.make("two-room"))
    context = model.encode(np.array([[50.0, 60.0]]))[:, None]
    far, edge = (model.rollout(context, np.empty((1, 0, 10)), np.full((1, 1, 10), v)) for v in (7.0, 1.0))
    np.testing.assert_array_equal(far, edge)


def test_a_class_is_named_by_module_and_name_and_gets_a_task_of_its_own():
    task = envs.make("reacher")
    model = world_model.load("agent.world_models.simulator:SimulatorWorldModel", task)
    assert isinstance(model, SimulatorWorldModel)
    assert model.task == "reacher"
    assert model._task is not task


def test_the_simulator_has_a_name_of_its_own():
    assert isinstance(world_model.load("simulator", "pusht"), SimulatorWorldModel)


def test_a_model_for_actions_of_another_size_is_refused(monkeypatch):
    monkeypatch.setattr(
        SimulatorWorldModel, "action_dim", property(lambda model: 3, lambda model, value: None), raising=False
    )
    with pytest.raises(envs.BadInput, match="takes 3 numbers an action, but two-room has 2"):
        world_model.load("simulator", "two-room")


class Bare:
    """A world model of Two-Room with what has no default, and no more."""

    task, image_size, look, sees = "two-room", 64, "fast", "state"
    action_dim, action_block, history, horizon = 2, 5, 1, 5
    action_low, action_high, action_mean, action_std = -np.ones(2), np.ones(2), np.zeros(2), np.ones(2)
    latent_size = cost_size = 2

    def __init__(self, task):
        pass

    def encode(self, observations):
        return observations

    def rollout(self, context, past_actions, actions):
        return np.zeros((*actions.shape[:2], 2))


class Unfinished:
    """Has a task, and promises proposals."""

    task, proposes = "two-room", True

    def __init__(self, task):
        pass

    def encode(self, observations):
        return observations


def test_a_class_gets_the_defaults_of_what_it_leaves_out():
    model = world_model.load(f"{__name__}:Bare", "two-room")
    assert isinstance(model, Bare)
    assert (model.proposes, model.planner, model.provider, model.sha256) == (False, {}, "CPU", None)
    with pytest.raises(NotImplementedError, match="does not propose"):
        model.propose(np.zeros((1, 2)), np.zeros((1, 2)), np.ones((1, 1)))


def test_a_class_that_lacks_what_has_no_default_is_refused_in_one_sentence():
    with pytest.raises(envs.BadInput) as refused:
        world_model.load(f"{__name__}:Unfinished", "two-room")
    lacks = (
        "image_size, look, action_dim, action_low, action_high, action_mean, action_std, action_block, history, "
        "horizon, latent_size, cost_size, sees, rollout, propose"
    )
    assert str(refused.value) == f"{__name__}:Unfinished is not a usable world model: it lacks {lacks}"


def test_the_examples_are_found_under_the_names_that_were_published_first():
    model = world_model.load("agent.examples.two_room_by_hand:TwoRoomByHand", "two-room")
    assert type(model).__module__ == "agent.world_models.examples.two_room_by_hand"


def test_a_world_model_written_by_hand_sees_pixels_and_reaches_its_goals():
    model = world_model.load("agent.world_models.examples.two_room_by_hand:TwoRoomByHand", "two-room")
    task = envs.make("two-room")
    states = np.random.default_rng(0).uniform(30, 195, (5, 2))
    np.testing.assert_allclose(model.encode(np.stack([task.draw(state) for state in states])), states, atol=1)
    reached = 0
    for number, pair in enumerate(envs.pairs("two-room", seed=0, n=10)):
        episode = Episode(task, ModelAgent(model, make("cem")), pair.start, pair.goal, seed=0, pair=number)
        reached += list(episode)[-1].first_hit is not None
    assert reached >= 9


def test_a_shipped_encoder_with_true_dynamics_foresees_what_it_will_see():
    task = envs.make("pusht")
    model = world_model.load("agent.world_models.examples.true_dynamics:TrueDynamics", task)
    shipped = world_model.load("qqworld.onnx", task)
    state = task.start(np.random.default_rng(0))
    plans = np.random.default_rng(1).uniform(-1, 1, (2, 2, 10))

    latents = model.rollout(model.encode(state[None])[None], np.empty((1, 0, 10)), plans)

    for action in plans[1].reshape(-1, 2):
        state = task.advance(state, action)
    np.testing.assert_allclose(latents[1, -1, : model.cost_size], shipped.encode(task.draw(state)[None])[0], atol=1e-5)
    start, goal, left = latents[:, 0], latents[:, -1], np.ones((2, 1))
    size = model.cost_size
    for part, same in zip(
        model.propose(start, goal, left), shipped.propose(start[:, :size], goal[:, :size], left), strict=True
    ):
        np.testing.assert_array_equal(part, same)


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("nowhere.onnx", "no model nowhere.onnx, here or under pretrained/two-room/"),
        ("no.such.module:Model", "neither a file nor a class"),
        ("agent.world_models.base:NoSuchClass", "neither a file nor a class"),
        (":", "neither a file nor a class"),
    ],
)
def test_a_name_that_finds_nothing_is_refused_in_one_sentence(model, complaint):
    with pytest.raises(envs.BadInput, match=complaint):
        world_model.load(model, "two-room")


def test_a_name_that_finds_nothing_lists_what_is_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(world_model, "PRETRAINED", tmp_path)
    (tmp_path / "two-room").mkdir()
    for name in ("qqworld.onnx", "lewm.onnx"):
        (tmp_path / "two-room" / name).touch()
    with pytest.raises(envs.BadInput, match=r"which holds lewm\.onnx, qqworld\.onnx$"):
        world_model.load("other.onnx", "two-room")
    assert world_model.find("lewm.onnx", "two-room") == tmp_path / "two-room" / "lewm.onnx"
