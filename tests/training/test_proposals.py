"""Proposals are learned from hindsight: they recover a known inverse, keep modes apart and resume bit for bit."""

import dataclasses
import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from envs.collect import Collect, collect
from envs.dataset.reader import Dataset, open_dataset
from envs.errors import BadInput
from tests import tiny
from tests.moving_dot import write
from training import propose
from training.data import latents as cached
from training.data.latents import latents_of, read_model
from training.data.windows import split
from training.phases.hindsight import Hindsight, aimed, loss, make_network, measure
from training.propose import Config, ProposalTrainer

torch.set_num_threads(1)  # the test workers already share the cores

GAIN, BLOCK = 0.2, 5


def run_of(folder: Path, task: str = "dot", **settings) -> Path:
    """A run folder with a tiny network for `task`."""
    config = tiny.run_folder(folder, **settings) / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"env": task}))
    return folder


def walks(policy, episodes: int = 200, steps: int = 40) -> tuple[Dataset, torch.Tensor]:
    """Walks of a point under actions `policy(rng, steps)` `(steps, 2)`, and its positions as the rows' latents."""
    rng = np.random.default_rng(0)
    taken = np.stack([policy(rng, steps) for _ in range(episodes)])
    start = rng.uniform(-1, 1, (episodes, 1, 2))
    states = np.concatenate([start, start + GAIN * np.cumsum(taken, axis=1)], axis=1).reshape(-1, 2)
    action = np.concatenate([taken, np.full((episodes, 1, 2), np.nan)], axis=1).reshape(-1, 2)
    data = Dataset(
        path=Path("walks"),
        pixels=np.empty((len(states), 1, 1, 3), np.uint8),
        action=action.astype(np.float32),
        state=states,
        offset=np.arange(episodes) * (steps + 1),
        length=np.full(episodes, steps + 1),
        task=None,
        frame_skip=1,
        state_names=("x", "y"),
        strays=np.zeros(episodes, bool),
    )
    return data, torch.from_numpy(states).float()


def test_proposals_learn_from_the_episodes_that_do_not_stray_if_there_are_any(tmp_path):
    files = {every: tmp_path / f"{every}.h5" for every in (1, 3)}
    for every, file in files.items():
        collect(Collect("two-room", file, episodes=7, steps=20, stray=0.5, stray_every=every), progress=False)
    some, all_of_them = (open_dataset(files[every]) for every in (3, 1))
    assert aimed(some, np.arange(7)).tolist() == [1, 2, 4, 5]
    assert aimed(all_of_them, np.arange(2, 7)).tolist() == [2, 3, 4, 5, 6]


def learned(hindsight: Hindsight, components: int, steps: int, draw):
    """A network after some steps on the samples that `draw(rng)` gives."""
    torch.manual_seed(0)
    scale = torch.zeros(2 * BLOCK), torch.ones(2 * BLOCK)
    network = make_network(hindsight.latents, *scale, components=components, width=64, depth=2)
    optimiser = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=3e-3)
    rng = np.random.default_rng(1)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = 3e-3 * (1 - step / steps)
        optimiser.zero_grad()
        loss(network, draw(rng)).backward()
        optimiser.step()
    return network.eval()


@pytest.fixture(scope="module")
def wanderer():
    """A network that has seen walks of independent steps, and those walks."""
    data, latents = walks(lambda rng, steps: rng.normal(0.0, 1.0, (steps, 2)))
    hindsight = Hindsight.of(data, np.arange(len(data.length)), BLOCK, latents, reach=25)
    return learned(
        hindsight, 1, 500, lambda rng: hindsight.draw(rng.integers(len(hindsight), size=512), rng)
    ), hindsight


@torch.no_grad()
def ask(network, start, goal, blocks_left):
    mixture = network.propose(
        *(torch.tensor(np.array([each]), dtype=torch.float32) for each in (start, goal, [blocks_left]))
    )
    return (part[0].numpy() for part in mixture)


# ---- what is learned -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("way", "blocks"), [((1.0, -1.0), 1), ((-0.5, 1.0), 1), ((1.0, 2.0), 2), ((-2.0, 1.0), 4)])
def test_on_a_walk_of_independent_steps_the_known_inverse_is_recovered(wanderer, way, blocks):
    """Of steps that add up to a displacement, each is expected to be its equal share."""
    for start in ([0.0, 0.0], [0.5, -0.5]):
        _, means, _ = ask(wanderer[0], start, np.add(start, way), blocks)
        share = np.array(way) / (GAIN * BLOCK * blocks)
        np.testing.assert_allclose(means[0].reshape(BLOCK, 2), np.tile(share, (BLOCK, 1)), atol=0.2)


def detour(rng, steps):
    """Straight on, and round obstacles either way: a block to the left then one to the right, or the reverse."""
    sides = np.repeat(rng.choice([-1.0, 1.0], steps // (2 * BLOCK)), 2 * BLOCK)
    sides *= np.tile(np.repeat([1.0, -1.0], BLOCK), steps // (2 * BLOCK))
    return np.stack([np.ones(steps), sides], axis=1)


@pytest.mark.parametrize("components", [1, 5])
def test_a_mixture_keeps_two_ways_apart_and_a_mean_lies_between_them(components):
    data, latents = walks(detour, steps=2 * BLOCK)
    latents -= latents.view(-1, 2 * BLOCK + 1, 2)[:, :1].expand(-1, 2 * BLOCK + 1, -1).reshape(-1, 2)
    hindsight = Hindsight.of(data, np.arange(len(data.length)), BLOCK, latents, reach=2 * BLOCK)
    network = learned(hindsight, components, 150, lambda rng: hindsight.apart(2))
    weights, means, _ = ask(network, [0.0, 0.0], [2 * BLOCK * GAIN, 0.0], 2)
    sides = means.reshape(components, BLOCK, 2)[:, :, 1].mean(axis=1)
    if components == 1:
        assert abs(sides[0]) < 0.2
    else:
        chosen = sides[weights > 0.2]
        np.testing.assert_allclose([chosen.min(), chosen.max()], [-1, 1], atol=0.1)


def test_errors_are_measured_by_distance_and_grow_with_it(wanderer):
    measured = measure(*wanderer)
    assert list(measured) == [f"{what}_{n}" for n in (1, 2, 3, 5) for what in ("error", "nll")]
    assert measured["error_1"] < measured["error_5"] < 1.1  # of a far goal nothing follows for a single step


# ---- which goals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 5])
def test_goals_are_frames_of_the_same_episode_up_to_the_reach(tmp_path, every):
    data = open_dataset(write(tmp_path / "dot.h5", episodes=6, steps=30, side=8, every=every))
    rows = torch.arange(len(data.pixels), dtype=torch.float32)[:, None]
    hindsight = Hindsight.of(data, np.arange(6), 5, rows, reach=20)
    index = np.tile(np.arange(len(hindsight)), 40)
    samples = hindsight.draw(index, np.random.default_rng(0))
    start, goal = samples.latents[:, 0].long().numpy(), samples.goals[:, 0].long().numpy()
    steps = (goal - start) * every
    assert np.array_equal(np.unique(steps), np.arange(5, 21, every))
    assert np.array_equal(start // (30 // every + 1), goal // (30 // every + 1))  # rows of one episode
    np.testing.assert_allclose(samples.blocks_left[:, 0], steps / 5)
    block = data.action[start[0] : start[0] + 5 // every].reshape(-1)
    np.testing.assert_array_equal(samples.actions[0], block)


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "dot.h5", episodes=12, steps=30, side=16)


@pytest.fixture
def config(data, tmp_path) -> Config:
    run = run_of(tmp_path / "run")
    small = {"width": 16, "depth": 2, "components": 2, "reach": 20, "steps": 12, "batch": 16}
    return Config(run=run, data=data, threads=1, log_every=2, eval_every=6, checkpoint_every=5, **small)


def metrics(folder: Path) -> list[dict]:
    """Every line of the metrics without the clock."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{part: value for part, value in line.items() if part != "speed"} for line in lines]


@pytest.mark.parametrize("kind", ["mixture", "mean"])
def test_proposals_stopped_and_resumed_are_the_same_bit_for_bit(config, tmp_path, kind):
    config = dataclasses.replace(config, kind=kind)
    whole = dataclasses.replace(config, out=tmp_path / "whole")
    ProposalTrainer(whole, bar=False).run()
    for stop in (4, 7):
        trainer = ProposalTrainer(config, bar=False)
        update = trainer.update
        trainer.update = lambda t=trainer, u=update, s=stop: (t.stop() if t.step == s - 1 else None, u())[1]
        trainer.run()
        assert trainer.step == stop
    ProposalTrainer(config, bar=False).run()
    first, second = (load_file(folder / "checkpoint.safetensors") for folder in (whole.out, config.run / "proposals"))
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
    assert metrics(whole.out) == metrics(config.run / "proposals")


def test_the_world_model_is_left_alone(config):
    before = (config.run / "checkpoint.safetensors").read_bytes()
    ProposalTrainer(config, bar=False).run()
    assert (config.run / "checkpoint.safetensors").read_bytes() == before


def test_frames_are_encoded_once_until_the_encoder_or_the_data_change(config, tmp_path, monkeypatch):
    encoded = []
    monkeypatch.setattr(cached, "encode", lambda model, pixels: encoded.append(len(pixels)) or real(model, pixels))
    real, frames = sys.modules["training.measures.held_out"].encode, open_dataset(config.data)
    _, _, model = read_model(config.run)

    first = latents_of(model, frames, config.run, bar=False)
    again = latents_of(model, frames, config.run, bar=False)
    assert sum(encoded) == len(frames.pixels)
    torch.testing.assert_close(first, again, rtol=0, atol=0)

    with torch.no_grad():
        model.projector[0].bias += 1
    other = latents_of(model, frames, config.run, bar=False)
    assert sum(encoded) == 2 * len(frames.pixels)
    assert not torch.equal(first, other)

    more = open_dataset(write(tmp_path / "more.h5", episodes=3, side=16, seed=1))
    assert len(latents_of(model, more, config.run, bar=False)) == len(more.pixels)
    (config.run / cached.CACHE).write_bytes(b"nonsense")
    torch.testing.assert_close(latents_of(model, frames, config.run, bar=False), other)


def test_the_command_trains_and_says_how_it_went(config, capfd):
    line = f"--run {config.run} --data {config.data} --kind mean --width 8 --depth 1 --steps 3 --batch 8 --threads 1"
    assert propose.main(shlex.split(line)) == 0
    said = capfd.readouterr().err
    assert "finished at step 3: error_1" in said
    stored = json.loads((config.run / "proposals" / "config.json").read_text())
    assert stored["network"]["components"] == 1
    assert stored["world_model"]["step"] == 7
    assert {"held_out", "train"} <= {part for line in metrics(config.run / "proposals") for part in line}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": 0}, "--steps must be at least 1, got 0"),
        ({"run": Path("nowhere")}, "there is no run folder nowhere"),
        ({"data": Path("nowhere.h5")}, "there is no data file nowhere.h5"),
        ({"batch": 10_000}, "fewer than one batch of 10000"),
        ({"dropout": 1.0}, "--dropout in"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(config, change, sentence):
    with pytest.raises(BadInput, match=sentence) as refused:
        ProposalTrainer(dataclasses.replace(config, **change), bar=False)
    assert "\n" not in str(refused.value)


def test_data_of_another_task_is_refused(config, tmp_path):
    other = dataclasses.replace(config, run=run_of(tmp_path / "other", task="pusht"))
    with pytest.raises(BadInput, match="holds data of dot, not of pusht"):
        ProposalTrainer(other, bar=False)


def test_data_of_another_size_is_refused(config, tmp_path):
    other = write(tmp_path / "large.h5", episodes=3, side=32)
    with pytest.raises(BadInput, match="pictures of 32 px"):
        ProposalTrainer(dataclasses.replace(config, data=other), bar=False)


def test_proposals_of_another_world_model_are_not_continued(config):
    ProposalTrainer(config, bar=False).run()
    run_of(config.run, seed=1)
    with pytest.raises(BadInput, match=r"other settings \(world_model.encoder"):
        ProposalTrainer(config, bar=False)


def test_training_and_held_out_episodes_are_the_trainers(config):
    trainer = ProposalTrainer(config, bar=False)
    train, held = split(open_dataset(config.data))
    assert set(trainer.hindsight.windows.episode) == set(train)
    assert set(trainer.held_out.windows.episode) == set(held)


def test_bad_input_is_status_2(tmp_path):
    command = [sys.executable, "-m", "training.propose", "--run", str(tmp_path), "--data", "nowhere.h5"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
