"""The training loop: a pure function of configuration, data and step, so that a resumed run is the same run."""

import dataclasses
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

import models
from envs.dataset.reader import Dataset, open_dataset
from envs.errors import BadInput
from models.run_folder import CHECKPOINT, last_measured, read_metrics, read_run
from training import distributed
from training.config import Config
from training.data.latents import latents_of
from training.data.windows import Loader, Order, Windows, action_scale, split
from training.machine import pick_device, seed_of, threads
from training.measures import diagnostics, plots
from training.measures.held_out import HeldOut
from training.phases.learner import Learner
from training.phases.optimiser import learning_rate, pack, unpack
from training.phases.stopwatch import Stopwatch
from training.provenance import FREE, describe
from training.run_folder import RunFolder

REDRAW_SECONDS = 30


class Diverged(RuntimeError):
    """The loss or its gradient is not finite."""


class Trainer:
    """One run, from its configuration to its last step; `run()` trains, `stop()` ends it after the current step."""

    def __init__(self, config: Config, say: Callable[[str], None] = lambda text: None, title: str = ""):
        self.config = config
        self.say = say
        self.title = title
        self.step = 0
        self.stopping = False
        config.check()
        self.device = pick_device(config.device)
        distributed.start(self.device)
        torch.set_num_threads(config.threads or threads())
        if config.batch % distributed.world():
            raise BadInput(
                f"a batch of {config.batch} cannot be shared by {distributed.world()} processes: change --batch"
            )

        network, block = config.network_settings(), models.PRESETS[config.preset].action_block
        self.data = data = open_dataset(config.data_path)
        if data.task not in (None, config.env):
            raise BadInput(f"{data.path} holds data of {data.task}, not of {config.env}: change --env or --data")
        if data.image_size != network["image_size"]:
            raise BadInput(
                f"{data.path} has pictures of {data.image_size} px, the {config.preset} preset wants "
                f"{network['image_size']}: give --image-size {data.image_size} or other data"
            )
        train, held = split(data)
        mean, std = action_scale(data, train)
        torch.manual_seed(seed_of(config.seed, 0))
        model = build(config.preset, data.action_dim, network)
        model.set_action_scale(torch.from_numpy(mean), torch.from_numpy(std))
        objective = config.make_objective(latent=model.latent, action_size=block * data.action_dim)
        self.learner = Learner(model, objective, config.open_loop, config.teacher_forcing, config.inverse).to(
            self.device
        )
        seen = data if config.encoder_from is None else keep_encoder(model, config.encoder_from, data)
        windows = Windows.of(seen, train, objective.frames, block, mean)
        order = Order(len(windows), config.batch, config.seed)
        share = config.batch // distributed.world()
        self.loader = Loader(windows, order, slice(distributed.rank() * share, (distributed.rank() + 1) * share))
        self.held_out = HeldOut(data, train, held, mean, block)
        self.folder = RunFolder(config.folder, writes=distributed.rank() == 0)
        self.folder.open(describe(config, data, self.learner, network, len(windows)), FREE)

        if config.compile:
            model.encoder.compile()
            model.predictor.compile()
        self.module: nn.Module = self.learner
        if distributed.world() > 1:
            distributed.globalise(self.learner)
            local = [self.device.index] if self.device.type == "cuda" else None
            self.module = DistributedDataParallel(self.learner, device_ids=local, broadcast_buffers=False)
        self.optimiser = torch.optim.AdamW(
            self.learner.parameters(), lr=config.peak_lr(), weight_decay=config.decay(), fused=True
        )
        self.directions = torch.Generator()
        self.resume()

    # ---- one step ------------------------------------------------------------------------------------------------

    def lr(self, step: int) -> float:
        """Learning rate of the update that ends step `step`."""
        config = self.config
        return learning_rate(step, config.schedule or config.steps, config.warmup, config.peak_lr())

    def update(self, pixels: np.ndarray, actions: np.ndarray) -> dict[str, float]:
        """One optimiser step on a batch; the step's randomness comes from the seed and its number alone."""
        number = self.step + 1
        torch.manual_seed(seed_of(self.config.seed, 1, number, distributed.rank()))
        self.directions.manual_seed(seed_of(self.config.seed, 2, number))
        frames, blocks = (torch.from_numpy(values).to(self.device) for values in (pixels, actions))
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.bf16):
            loss = self.module(frames, blocks, self.directions)
        self.optimiser.zero_grad()
        loss.total.backward()
        norm = float(nn.utils.clip_grad_norm_(self.learner.parameters(), self.config.clip))
        if not math.isfinite(norm) or not math.isfinite(float(loss.total.detach())):
            raise Diverged(self.post_mortem(number))
        for group in self.optimiser.param_groups:
            group["lr"] = self.lr(number)
        self.optimiser.step()
        self.step = number
        terms = distributed.mean(torch.stack([value.detach() for value in loss.terms.values()])).tolist()
        measured = dict(zip(loss.terms, terms, strict=True))
        weighted = {name: loss.weights[name] * value for name, value in measured.items()}
        measured |= {f"{name}_weighted": value for name, value in weighted.items() if name != "prediction"}
        return {"loss": sum(weighted.values()), **measured, "lr": self.lr(number), "gradient_norm": norm}

    def post_mortem(self, number: int) -> str:
        """What to say when the loss or its gradient is not finite."""
        episodes = ", ".join(map(str, self.loader.episodes(number - 1)))
        last = self.folder.load()
        kept = (
            f"{self.folder.path / CHECKPOINT} of step {last[0]} is untouched" if last else "there is no checkpoint yet"
        )
        return (
            f"the loss or its gradient is not finite at step {number}, on episodes {episodes}; {kept}: "
            "look at those episodes, or start again with a lower --lr"
        )

    # ---- the loop ------------------------------------------------------------------------------------------------

    def run(self, bar: bool = True) -> dict[str, float]:
        """Train to the last step (or to `stop()`), logging, measuring and saving on the way; the last measurements."""
        config, watch, drawn = self.config, Stopwatch(), time.perf_counter()
        measured = self.measure() if self.step == 0 else last_measured(self.folder.path)
        interval = 0.5 if sys.stderr.isatty() else 30.0
        hidden = not bar or distributed.rank() != 0
        progress = tqdm(
            desc=self.title or None,
            total=config.steps,
            initial=self.step,
            unit="step",
            mininterval=interval,
            disable=hidden,
        )
        while self.step < config.steps and not self.told_to_stop():
            with watch:
                batch = self.loader[self.step]
                watch.loaded()
                trained = self.update(*batch)
            progress.update()
            if self.due(config.log_every):
                speed = watch.read(config.batch * self.learner.objective.frames)
                self.log({"train": trained, "speed": speed})
                shown = {name: trained[name] for name in ("loss", *self.learner.objective.weights)}
                shown |= {"error": measured.get("error_5", math.nan), "frames/s": speed["frames_per_second"]}
                progress.set_postfix({name: f"{value:.3g}" for name, value in shown.items()})
            if self.due(config.eval_every):
                measured = self.measure()
            if self.due(config.checkpoint_every):
                self.save()
            if self.due(config.log_every) and time.perf_counter() - drawn > REDRAW_SECONDS:
                self.draw()
                drawn = time.perf_counter()
        progress.close()
        if self.step < config.steps:
            self.save()
        self.draw()
        self.close()
        return measured

    def close(self) -> None:
        """Let go of the data and the run folder."""
        self.loader.close()
        self.folder.close()

    def due(self, every: int) -> bool:
        """Whether what happens every N steps, and at the end, happens now."""
        return self.step % every == 0 or self.step == self.config.steps

    def describe(self) -> str:
        """What is trained on what, and from where, in two lines."""
        parameters = sum(parameter.numel() for parameter in self.learner.model.parameters())
        return f"{self.data.describe()}\n{parameters:,} parameters on {self.device}, from step {self.step}"

    def stop(self) -> None:
        """End after the current step, with a checkpoint."""
        self.stopping = True

    def told_to_stop(self) -> bool:
        """Whether any process was told to stop: all of them must leave the loop at the same step."""
        if distributed.world() == 1:
            return self.stopping
        return bool(distributed.mean(torch.tensor(float(self.stopping), device=self.device)) > 0)

    def measure(self) -> dict[str, float]:
        """Measure on held-out episodes and log it; warns when the latents collapse."""
        if distributed.rank() != 0:
            return {}
        measured = self.held_out.measure(self.learner.model)
        self.log({"held_out": measured})
        if self.step and (warning := diagnostics.alarm(measured)):
            self.say(f"warning: at step {self.step} {warning}")
        return measured

    def log(self, parts: dict[str, dict[str, float]]) -> None:
        """Add a line to the metrics."""
        if distributed.rank() == 0:
            self.folder.log({"step": self.step, **parts})

    def draw(self) -> None:
        """Draw the metrics so far as training.png."""
        if distributed.rank() != 0:
            return
        title = f"{self.config.env}, {self.config.objective}, {self.config.preset}: {self.config.folder}"
        self.folder.replace("training.png", lambda path: plots.draw(read_metrics(self.folder.path), path, title))

    # ---- what is kept --------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write a checkpoint: model, objective (its queue) and optimiser in one file."""
        if distributed.rank() != 0:
            return
        self.folder.save(self.step, pack(self.learner, self.optimiser))

    def resume(self) -> None:
        """Go on from the last checkpoint, if there is one."""
        loaded = self.folder.load()
        if loaded:
            self.step, tensors = loaded
            unpack(tensors, self.learner, self.optimiser)
        self.folder.resume_at(self.step if loaded else -1)


def keep_encoder(model: models.WorldModel, run: Path, data: Dataset) -> Dataset:
    """`data` with latents for pixels; `model` gets a run's weights where they fit and an encoder that stays so."""
    trained = read_run(run).model
    fits = {name: tensor.shape for name, tensor in model.state_dict().items()}
    given = {name: tensor for name, tensor in trained.state_dict().items() if fits.get(name) == tensor.shape}
    model.load_state_dict(given, strict=False)
    if model.encoder_fingerprint() != trained.encoder_fingerprint():
        raise BadInput(f"the encoder in {run} has another shape: leave the settings of the encoder out")
    model.encoder.requires_grad_(False)
    model.projector.requires_grad_(False)
    with distributed.main_process_first():
        latents = latents_of(trained, data, run, bar=distributed.rank() == 0)
    return dataclasses.replace(data, pixels=latents.numpy())


def build(preset: str, action_dim: int, network: dict[str, Any]) -> models.WorldModel:
    """The network, with what cannot be built refused as bad input."""
    try:
        return models.build(preset, action_dim=action_dim, **network)
    except ValueError as error:
        raise BadInput(str(error)) from None
