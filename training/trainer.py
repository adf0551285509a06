"""The training loop: a pure function of configuration, data and step, so that a resumed run is the same run."""

import dataclasses
import math
import platform
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

import models
from training import diagnostics, distributed, plots
from training.config import Config
from training.dataset import open_dataset
from training.errors import BadInput
from training.held_out import HeldOut
from training.learner import Learner
from training.machine import git_revision, pick_device, seed_of, threads
from training.run_folder import CHECKPOINT, RunFolder
from training.windows import Loader, Order, Windows, action_scale, split

FREE = {"steps", "device", "threads", "checkpoint_every", "versions", "git", "path"}
"""Settings that may change when a run goes on: they do not change what it computes."""
REDRAW_SECONDS = 30


class Diverged(RuntimeError):
    """The loss or its gradient is no longer a number."""


class Trainer:
    """One run, from its configuration to its last step; `run()` trains, `stop()` ends it after the current step."""

    def __init__(self, config: Config, say: Callable[[str], None] = lambda text: None):
        self.config, self.say, self.step, self.stopping = config, say, 0, False
        config.check()
        self.device = pick_device(config.device)
        distributed.start(self.device)
        torch.set_num_threads(config.threads or threads())
        if config.batch % distributed.world():
            raise BadInput(
                f"a batch of {config.batch} cannot be shared by {distributed.world()} processes: change --batch"
            )

        network, block = config.network_settings(), models.PRESETS[config.preset].action_block
        self.data = data = open_dataset(config.data)
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
        self.learner = Learner(model, objective).to(self.device)
        windows = Windows.of(data, train, objective.frames, block, mean)
        order = Order(len(windows), config.batch, config.seed)
        share = config.batch // distributed.world()
        self.loader = Loader(windows, order, slice(distributed.rank() * share, (distributed.rank() + 1) * share))
        self.held_out = HeldOut(data, train, held, mean, block)
        self.folder = RunFolder(config.out, writes=distributed.rank() == 0)
        self.folder.open(self.describe(network, mean, std, len(windows)), FREE)

        self.module: nn.Module = self.learner
        if distributed.world() > 1:
            distributed.globalise(self.learner)
            local = [self.device.index] if self.device.type == "cuda" else None
            self.module = DistributedDataParallel(self.learner, device_ids=local, broadcast_buffers=False)
        if config.compile:
            model.encoder.compile()
            model.predictor.compile()
        self.optimiser = torch.optim.AdamW(
            self.learner.parameters(), lr=config.peak_lr(), weight_decay=config.weight_decay, fused=True
        )
        self.directions = torch.Generator()
        self.resume()

    # ---- one step ------------------------------------------------------------------------------------------------

    def lr(self, step: int) -> float:
        """Learning rate of the update that ends step `step`: linear warm-up, then a cosine to 0."""
        length = self.config.schedule or self.config.steps
        warm = max(1, round(self.config.warmup * length))
        if step <= warm:
            return self.config.peak_lr() * step / warm
        progress = min(1.0, (step - warm) / max(1, length - warm))
        return self.config.peak_lr() * 0.5 * (1 + math.cos(math.pi * progress))

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
        """What to say when the loss is no longer a number."""
        episodes = ", ".join(map(str, self.loader.episodes(number - 1)))
        last = self.folder.load()
        kept = (
            f"{self.folder.path / CHECKPOINT} of step {last[0]} is untouched" if last else "there is no checkpoint yet"
        )
        return (
            f"the loss or its gradient is not finite at step {number}, on episodes {episodes}; {kept}: "
            "look at those episodes, or begin anew with a lower --lr"
        )

    # ---- the loop ------------------------------------------------------------------------------------------------

    def run(self, bar: bool = True) -> dict[str, float]:
        """Train to the last step (or to `stop()`), logging, measuring and saving on the way; the last measurements."""
        config, measured, drawn = self.config, {}, 0.0
        main = distributed.rank() == 0
        if self.step == 0:
            measured = self.measure()
        progress = tqdm(total=config.steps, initial=self.step, unit="step", disable=None if bar and main else True)
        began, waited, first = time.perf_counter(), 0.0, self.step
        while self.step < config.steps and not self.told_to_stop():
            asked = time.perf_counter()
            batch = self.loader[self.step]
            waited += time.perf_counter() - asked
            trained = self.update(*batch)
            progress.update()
            last = self.step >= config.steps
            if self.step % config.log_every == 0 or last:
                seconds = time.perf_counter() - began
                speed = (self.step - first) * config.batch * self.learner.objective.frames / seconds
                line = {
                    "step": self.step,
                    "train": trained,
                    "speed": {"frames_per_second": speed, "data": waited / seconds},
                }
                if main:
                    self.folder.log(line)
                progress.set_postfix(
                    {name: f"{trained[name]:.3g}" for name in ("loss", *self.learner.objective.weights)}
                    | {"error": f"{measured.get('error_5', math.nan):.2f}", "frames/s": f"{speed:.0f}"}
                )
            if self.step % config.eval_every == 0 or last:
                measured = self.measure()
            if self.step % config.checkpoint_every == 0 or last:
                self.save()
            if main and self.step % config.log_every == 0 and (last or time.perf_counter() - drawn > REDRAW_SECONDS):
                self.draw()
                drawn = time.perf_counter()
            if self.step % config.log_every == 0 or self.step % config.eval_every == 0:
                began, waited, first = time.perf_counter(), 0.0, self.step
        progress.close()
        if self.step < config.steps:
            self.save()
        if main:
            self.draw()
        return measured

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
        self.folder.log({"step": self.step, "held_out": measured})
        if self.step and (warning := diagnostics.alarm(measured)):
            self.say(f"warning: at step {self.step} {warning}")
        return measured

    def draw(self) -> None:
        """Draw the metrics so far as training.png."""
        title = f"{self.config.env}, {self.config.objective}, {self.config.preset}: {self.config.out}"
        self.folder.replace("training.png", lambda path: plots.draw(self.folder.metrics(), path, title))

    # ---- what is kept --------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write a checkpoint: model, objective (its queue) and optimiser in one file."""
        if distributed.rank() != 0:
            return
        tensors = dict(self.learner.state_dict())
        for index, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{index}.{name}": value for name, value in state.items()}
        self.folder.save(self.step, tensors)

    def resume(self) -> None:
        """Go on from the last checkpoint, if there is one."""
        loaded = self.folder.load()
        if loaded:
            self.step, tensors = loaded
            optimiser = self.optimiser.state_dict()
            for name in [name for name in tensors if name.startswith("optimiser.")]:
                _, index, key = name.split(".")
                optimiser["state"].setdefault(int(index), {})[key] = tensors.pop(name)
            self.learner.load_state_dict(tensors)
            self.optimiser.load_state_dict(optimiser)
        self.folder.drop_after(self.step if loaded else -1)

    def describe(self, network: dict[str, Any], mean: np.ndarray, std: np.ndarray, windows: int) -> dict[str, Any]:
        """What `config.json` holds: settings in full, the data's identity, and where it all came from."""
        config, data, objective = self.config, self.data, self.learner.objective
        chosen = {
            field.name: getattr(config, field.name)
            for field in dataclasses.fields(config)
            if field.name not in ("data", "out", "network")
        }
        return _plain(
            {
                **chosen,
                "schedule": config.schedule or config.steps,
                "lr": config.peak_lr(),
                "regulariser": {**dataclasses.asdict(config.regulariser), "weights": objective.weights},
                "network": network,
                "parameters": sum(parameter.numel() for parameter in self.learner.model.parameters()),
                "action_dim": data.action_dim,
                "action_mean": mean.tolist(),
                "action_std": std.tolist(),
                "data": {
                    "path": config.data,
                    "fingerprint": data.fingerprint,
                    "task": data.task,
                    "episodes": len(data.length),
                    "frames": int(data.length.sum()),
                    "windows": windows,
                    "frame_skip": data.frame_skip,
                },
                "versions": {name: metadata.version(name) for name in ("torch", "numpy", "h5py", "safetensors")}
                | {"python": platform.python_version()},
                "git": git_revision(),
            }
        )


def build(preset: str, action_dim: int, network: dict[str, Any]) -> models.WorldModel:
    """The network, with what cannot be built refused as bad input."""
    try:
        return models.build(preset, action_dim=action_dim, **network)
    except ValueError as error:
        raise BadInput(str(error)) from None


def _plain(value: Any) -> Any:
    """A value as JSON gives it back: tuples as lists, paths as text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
