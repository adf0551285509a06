"""Trains proposals on a trained world model: a pure function of configuration, data and step, like the trainer."""

import dataclasses
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from envs.dataset.reader import open_dataset
from envs.errors import BadInput
from models.run_folder import ENCODER, PROPOSALS, Run, last_measured, read_run
from training.data.hindsight import Hindsight, Samples, aimed, sample_rows
from training.data.latents import latents_of
from training.data.windows import Order, split
from training.machine import pick_device, seed_of, threads
from training.phases.optimiser import learning_rate, pack, unpack
from training.phases.proposal_loss import loss, make_network, measure
from training.phases.stopwatch import Stopwatch
from training.phases.trainer import Diverged
from training.provenance import FREE, git_revision, versions
from training.run_folder import RunFolder

WARMUP, CLIP = 0.01, 1.0


@dataclass(frozen=True)
class ProposalConfig:
    """Proposals for one world model."""

    run: Path
    """Run folder of the world model."""
    data: Path
    """Dataset file (HDF5), as for the world model."""
    out: Path | None = None
    """Folder for the proposals; default: RUN/proposals, where the export looks for them."""
    kind: Literal["mixture", "mean"] = "mixture"
    """A mixture of Gaussians, or one mean action block (regression)."""
    components: int = 5
    """Gaussians of the mixture."""
    reach: int = 100
    """Control steps from a frame to its goal, at most."""
    straying: bool = False
    """Learn from episodes that stray too; without it only from those that do not, if the data has any."""
    width: int = 512
    """Width of the hidden layers."""
    depth: int = 3
    """Hidden layers."""
    dropout: float = 0.1
    """Dropout after each of them."""
    steps: int = 10_000
    """Optimiser steps."""
    batch: int = 1024
    """Frames per step."""
    lr: float = 1e-3
    """Peak learning rate; it rises for a hundredth of the steps, a cosine to 0 follows."""
    weight_decay: float = 1e-2
    """AdamW's weight decay."""
    seed: int = 0
    """Seed of weights, order, goals and dropout; the split is the world model's."""
    device: str = "auto"
    """auto, cpu or cuda."""
    threads: int | None = None
    """CPU threads; default: the physical cores."""
    log_every: int = 100
    """Steps between two lines of metrics.jsonl."""
    eval_every: int = 1000
    """Steps between two measurements on held-out episodes."""
    checkpoint_every: int = 1000
    """Steps between two checkpoints: what a kill can cost at most."""

    def check(self) -> None:
        """Refuse numbers that make no sense."""
        for name in ("components", "reach", "width", "depth", "steps", "batch", "log_every", "eval_every"):
            if getattr(self, name) < 1:
                raise BadInput(f"--{name.replace('_', '-')} must be at least 1, got {getattr(self, name)}")
        if self.checkpoint_every < 1 or self.seed < 0 or self.lr <= 0 or not 0 <= self.dropout < 1:
            raise BadInput("--checkpoint-every is at least 1, --seed 0, --lr above 0 and --dropout in [0, 1)")


class ProposalTrainer:
    """Learns proposals; `run()` trains, `stop()` ends it after the current step."""

    def __init__(self, config: ProposalConfig, bar: bool = True, title: str = ""):
        config.check()
        self.config = config
        self.bar = bar
        self.title = title
        self.step = 0
        self.stopping = False
        self.device = pick_device(config.device)
        torch.set_num_threads(config.threads or threads())
        run = read_run(config.run)
        world, data = run.model, open_dataset(config.data)
        if data.task not in (None, run.task):
            raise BadInput(f"{data.path} holds data of {data.task}, not of {run.task}: give the data it was trained on")
        if (data.image_size, data.action_dim) != (world.image_size, world.action_dim):
            raise BadInput(
                f"{data.path} has pictures of {data.image_size} px and {data.action_dim}-D actions, the world model "
                f"in {config.run} wants {world.image_size} px and {world.action_dim}-D: give the data it was trained on"
            )
        block = world.action_block
        settings = {
            "components": config.components if config.kind == "mixture" else 1,
            "width": config.width,
            "depth": config.depth,
            "dropout": config.dropout,
        }
        train, held = split(data)
        if not config.straying:
            train, held = aimed(data, train), aimed(data, held)
        self.folder = RunFolder(config.out or config.run / PROPOSALS)
        self.folder.open(describe(config, settings, run, data.fingerprint), FREE - {"steps"})

        encoder = config.run / ENCODER  # where the predictor's latents are kept
        cache = encoder if encoder.is_dir() else config.run
        latents = latents_of(world.to(self.device), data, cache, bar)
        self.hindsight = Hindsight.of(data, train, block, latents, config.reach)
        self.held_out = Hindsight.of(data, held, block, latents, config.reach)
        self.order = Order(len(self.hindsight), config.batch, config.seed)
        torch.manual_seed(seed_of(config.seed, 0))
        mean, std = (scale.cpu().repeat(block) for scale in (world.action_mean, world.action_std))
        self.network = make_network(latents[sample_rows(data, train)], mean, std, **settings).to(self.device)
        learned = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        self.optimiser = torch.optim.AdamW(learned, lr=config.lr, weight_decay=config.weight_decay, fused=True)
        loaded = self.folder.load()
        if loaded:
            self.step, tensors = loaded
            unpack(tensors, self.network, self.optimiser)
        self.folder.resume_at(self.step if loaded else -1)

    def update(self) -> dict[str, float]:
        """One optimiser step; its batch, goals and dropout come from the seed and its number alone."""
        number = self.step + 1
        goals = np.random.default_rng([self.config.seed, 1, number])
        samples = Samples(*(part.to(self.device) for part in self.hindsight.draw(self.order[self.step], goals)))
        torch.manual_seed(seed_of(self.config.seed, 2, number))
        value = loss(self.network, samples)
        self.optimiser.zero_grad()
        value.backward()
        norm = float(nn.utils.clip_grad_norm_(self.network.parameters(), CLIP))
        if not math.isfinite(norm):
            raise Diverged(f"the loss or its gradient is not finite at step {number}: start again with a lower --lr")
        lr = learning_rate(number, self.config.steps, WARMUP, self.config.lr)
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        self.optimiser.step()
        self.step = number
        return {"loss": float(value.detach()), "lr": lr, "gradient_norm": norm}

    def run(self) -> dict[str, float]:
        """Train to the last step (or to `stop()`), logging, measuring and saving on the way; the last measurements."""
        config, watch = self.config, Stopwatch()
        measured = self.measure() if self.step == 0 else last_measured(self.folder.path)
        interval = 0.5 if sys.stderr.isatty() else 30.0
        with tqdm(
            desc=self.title or None,
            total=config.steps,
            initial=self.step,
            unit="step",
            mininterval=interval,
            disable=not self.bar,
        ) as progress:
            while self.step < config.steps and not self.stopping:
                with watch:
                    trained = self.update()
                progress.update()
                if self.due(config.log_every):
                    speed = {"frames_per_second": watch.read(config.batch)["frames_per_second"]}
                    self.folder.log({"step": self.step, "train": trained, "speed": speed})
                    shown = {"loss": trained["loss"], "error": measured.get("error_5", math.nan)}
                    progress.set_postfix({name: f"{value:.3g}" for name, value in shown.items()})
                if self.due(config.eval_every):
                    measured = self.measure()
                if self.due(config.checkpoint_every):
                    self.save()
        if self.step < config.steps:
            self.save()
        self.folder.close()
        return measured

    def due(self, every: int) -> bool:
        """Whether what happens every N steps, and at the end, happens now."""
        return self.step % every == 0 or self.step == self.config.steps

    def measure(self) -> dict[str, float]:
        """Measure on held-out episodes and log it."""
        measured = measure(self.network, self.held_out)
        self.folder.log({"step": self.step, "held_out": measured})
        return measured

    def save(self) -> None:
        """Write a checkpoint."""
        self.folder.save(self.step, pack(self.network, self.optimiser))

    def describe(self) -> str:
        """What is trained on what, and from where, in a line."""
        parameters = sum(parameter.numel() for parameter in self.network.parameters())
        return f"{len(self.hindsight)} frames, {parameters:,} parameters on {self.device}, from step {self.step}"

    def stop(self) -> None:
        """End after the current step, with a checkpoint."""
        self.stopping = True


def describe(config: ProposalConfig, settings: dict[str, Any], run: Run, data: str) -> dict[str, Any]:
    """What `config.json` holds: settings in full, and which world model and data it all belongs to."""
    chosen = {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if field.name not in ("run", "data", "out", "components", "width", "depth", "dropout")
    }
    world = run.model
    return {
        **chosen,
        "network": {"latent": world.latent, "action_size": world.action_block * world.action_dim, **settings},
        "world_model": {"step": run.step, "encoder": world.encoder_fingerprint()},
        "data": {"fingerprint": data},
        "versions": versions(),
        "git": git_revision(),
    }
