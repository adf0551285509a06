"""Several processes train as one: loss, gradients and weights are those of one process with the whole batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as spawning
from safetensors.torch import load_file
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import models
from tests.moving_dot import write
from training import distributed, objectives
from training.phases.learner import Learner

torch.set_num_threads(1)  # the test workers already share the cores

OBJECTIVES = ["qqworld", "lewm", "vicreg", "pldm", "visreg", "sub-jepa", "sd-jepa", "smwm"]
CASES = [*(("compact-transformer", name) for name in OBJECTIVES), ("compact", "qqworld")]
TOLERANCE = {"compact-transformer": 1e-5, "compact": 1e-4}  # moments are differences of rounded numbers
SMALL = {"image_size": 16, "channels": (4, 8), "hidden": 16, "width": 16, "depth": 1, "heads": 2, "mlp": 16}


def learner_of(preset: str, name: str) -> Learner:
    """A small learner without dropout, the same in every process; gates open so that all gradients flow."""
    torch.manual_seed(0)
    frames = objectives.OBJECTIVES[name].frames
    model = models.build(preset, action_dim=2, latent=32, dropout=0.0, history=frames - 1, **SMALL)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    settings = {"queue": 1} if name == "qqworld" else {}
    return Learner(model, objectives.make(name, latent=32, **settings), inverse=0.5 if name == "lewm" else 0.0)


def batches(name: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Two batches of 8 windows, so that a queue has something to remember."""
    noise = torch.Generator().manual_seed(1)
    frames = objectives.OBJECTIVES[name].frames
    shape = (8, frames, 16, 16, 3)
    return [
        (torch.randint(0, 256, shape, dtype=torch.uint8, generator=noise), torch.randn(8, frames, 10, generator=noise))
        for _ in range(2)
    ]


def second_step(module: nn.Module, learner: Learner, name: str, part: slice) -> dict[str, torch.Tensor]:
    """Loss, gradients and running statistics after the second of two batches."""
    for step, (pixels, actions) in enumerate(batches(name)):
        module.zero_grad()
        loss = module(pixels[part], actions[part], torch.Generator().manual_seed(step))
        loss.total.backward()
    found = {f"gradient of {key}": value.grad for key, value in learner.named_parameters()}
    found |= {key: value for key, value in learner.named_buffers() if "running" in key}
    return found | {"loss": distributed.mean(loss.total.detach())}


def one_rank(rank: int, world: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world)
    for preset, name in CASES:
        learner = learner_of(preset, name)
        distributed.globalise(learner)
        module = DistributedDataParallel(learner, broadcast_buffers=False)
        share = 8 // world
        found = second_step(module, learner, name, slice(rank * share, (rank + 1) * share))
        if rank == 0:
            torch.save(found, f"{folder}/{preset}-{name}.pt")
    dist.destroy_process_group()


def test_two_processes_have_the_loss_and_gradients_of_one_with_the_whole_batch(tmp_path):
    spawning.spawn(one_rank, args=(2, str(tmp_path)), nprocs=2)
    for preset, name in CASES:
        learner = learner_of(preset, name)
        alone = second_step(learner, learner, name, slice(None))
        together = torch.load(tmp_path / f"{preset}-{name}.pt", weights_only=True)
        assert alone.keys() == together.keys()
        near = {"rtol": TOLERANCE[preset], "atol": TOLERANCE[preset]}
        for key, value in alone.items():
            what = f"{preset} {name} {key}"
            torch.testing.assert_close(together[key], value, **near, msg=lambda text, what=what: f"{what}: {text}")


def test_half_the_batch_alone_would_give_another_loss():
    learner, again = (learner_of("compact-transformer", "qqworld") for _ in range(2))
    whole = second_step(learner, learner, "qqworld", slice(None))["loss"]
    half = second_step(again, again, "qqworld", slice(0, 4))["loss"]
    assert abs(float(whole - half)) > 1e-3


def test_a_global_batch_norm_keeps_parameters_and_names():
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Sequential(nn.Flatten(), nn.BatchNorm1d(4)))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    distributed.globalise(network)
    assert not [part for part in network.modules() if type(part) in (nn.BatchNorm1d, nn.BatchNorm2d)]
    after = network.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_batch_norm_that_is_kept_as_it_is_stays_so():
    kept = distributed.globalise(nn.Sequential(nn.BatchNorm1d(4), nn.BatchNorm1d(4)).requires_grad_(False))
    assert not any(parameter.requires_grad for parameter in kept.parameters())


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "-m"]
TINY = (
    "--env dot --batch 8 --dropout 0 --latent 16 --image-size 32 --channels 8 16 --stem 4 --hidden 32 --width 32 "
    "--depth 1 --heads 2 --mlp 32 --directions 32 --queue 1 --log-every 1 --lr 1e-4"
)


def train(launcher: list[str], data: Path, out: Path, settings: str) -> None:
    command = [*launcher, "training.train", "--data", str(data), "--out", str(out), *TINY.split(), *settings.split()]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr


def test_torchrun_trains_the_model_that_one_process_trains(tmp_path):
    data = write(tmp_path / "dot.h5", episodes=6, side=32)
    for name, launcher in (("one", [sys.executable, "-m"]), ("two", TORCHRUN)):
        train(launcher, data, tmp_path / name, "--preset compact-transformer --steps 5")
    one, two = (load_file(tmp_path / name / "checkpoint.safetensors") for name in ("one", "two"))
    for key, value in one.items():
        if key.startswith("model."):
            torch.testing.assert_close(
                two[key], value, rtol=1e-3, atol=1e-4, msg=lambda text, key=key: f"{key}: {text}"
            )
    losses = [
        [json.loads(line)["train"]["loss"] for line in (tmp_path / name / "metrics.jsonl").open() if "train" in line]
        for name in ("one", "two")
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


def test_torchrun_trains_the_three_phases(tmp_path):
    train(TORCHRUN, write(tmp_path / "dot.h5", episodes=6, side=32), tmp_path / "run", "--steps 1")
    for folder in ("encoder", "", "proposals"):
        assert (tmp_path / "run" / folder / "checkpoint.safetensors").exists()
