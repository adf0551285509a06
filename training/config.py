"""Every setting of a training run; `--help` of the trainer is made from this file."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import models
from envs import recipes
from envs.errors import BadInput
from models.run_folder import read_config
from training import objectives

COMPACT_LR = 1e-3
WEIGHT_DECAY = 1e-3
Phase = Literal["encoder", "predictor", "proposals", "joint"]


@dataclass(frozen=True)
class Network:
    """Changes to the preset's network; default: as the preset has it."""

    latent: int | None = None
    """Size of the latent."""
    image_size: int | None = None
    """Side of the pictures in pixels; must be that of the data."""
    encoder: Literal["strides", "moments"] | None = None
    """Compact: strided convolutions, or convolutions read by their spatial moments."""
    channels: tuple[int, ...] | None = None
    """Compact: output channels of each stage of the encoder."""
    stem: int | None = None
    """Compact: stride of the encoder's first stage."""
    hidden: int | None = None
    """Compact: width of the encoder's last hidden layer."""
    activation: Literal["gelu", "relu", "silu"] | None = None
    """Compact: nonlinearity of the encoder."""
    history: int | None = None
    """Latents that the predictor sees; default: all frames of a window but the last."""
    predictor: Literal["transformer", "markov"] | None = None
    """Compact: attention over the last few latents, or a plain network of them."""
    width: int | None = None
    """Compact: width of the predictor."""
    depth: int | None = None
    """Compact: blocks of the transformer, or hidden layers of the plain network."""
    heads: int | None = None
    """Compact: attention heads of the transformer."""
    mlp: int | None = None
    """Compact: hidden width of the transformer's MLPs."""
    dropout: float | None = None
    """Dropout of the predictor."""
    residual: bool | None = None
    """Compact: predict the change of the latent rather than the next latent."""


@dataclass(frozen=True)
class Regulariser:
    """Changes to the objective; default: as published for the task."""

    strength: float | None = None
    """Weight of mean-QQ that pulls as strongly near a Gaussian: regularisers are compared at equal strength."""
    weight: float | None = None
    """The regulariser's own weight, in place of --strength."""
    directions: int | None = None
    """Random directions per step, for objectives that project."""
    reduction: Literal["sum", "mean"] | None = None
    """qqworld: sum or mean over the batch."""
    queue: int | None = None
    """qqworld: previous batches kept for ranking (the paper's queue length is one more: it counts the current one)."""
    targets: Literal["plain", "corrected"] | None = None
    """qqworld: Gaussian quantiles as published, or corrected for the bias of a finite batch."""


@dataclass(frozen=True)
class Proposing:
    """What proposals have besides."""

    kind: Literal["mixture", "mean"] = "mixture"
    """Proposals: a mixture of Gaussians, or one mean action block (regression)."""
    components: int = 5
    """Proposals: Gaussians of the mixture."""
    reach: int = 100
    """Proposals: control steps from a frame to its goal, at most."""
    straying: bool = False
    """Proposals: learn from episodes that stray too; without it only from those that do not, if the data has any."""


@dataclass(frozen=True)
class Config:
    """One phase of training."""

    env: str
    """Task the data must be of: two-room, pusht, reacher or cube."""
    data: Path | None = None
    """Dataset file (HDF5), from `python -m envs.collect` or published by LeWM (default: data/TASK.h5)."""
    out: Path | None = None
    """Run folder (default: runs/TASK, with the objective's name if it is not qqworld). What is finished in it stays."""
    phases: tuple[Phase, ...] = ()
    """What to train, in turn: encoder (with a predictor to teach it), predictor (again, alone, on the kept encoder) and
    proposals; or joint, encoder and predictor in one run (default: the first three for compact, joint for others)."""
    objective: str = "qqworld"
    """qqworld, lewm, vicreg, pldm, visreg, sub-jepa, sd-jepa, smwm or none."""
    preset: str = "compact"
    """compact (what we ship), compact-transformer, or paper (LeWM's network, 224 px)."""
    encoder_from: Path | None = None
    """Run whose encoder is kept as it is: only the predictor learns, on latents that are computed once. The network is
    that run's but for what is changed here (default for the phase predictor: OUT/encoder)."""
    open_loop: bool = False
    """Let the prediction error also count predictions that roll on from a window's first frame alone."""
    teacher_forcing: bool = True
    """Let the prediction error count predictions from true latents; without them --open-loop costs half."""
    inverse: float = 0.0
    """Weight of a head that must tell the actions between two latents of a window: it keeps small things in sight."""
    frames: int | None = None
    """Frames of a training window; default: as many as published for the objective."""
    steps: int = 10_000
    """Optimiser steps to stop after."""
    schedule: int | None = None
    """Length of the learning-rate schedule; default: --steps. Give it if a later command may raise --steps."""
    batch: int = 128
    """Windows per step, over all processes."""
    lr: float | None = None
    """Peak learning rate; the objective's published one for paper, 1e-3 for compact."""
    warmup: float = 0.01
    """Share of the schedule with a rising learning rate; a cosine to 0 follows."""
    weight_decay: float | None = None
    """AdamW's weight decay, on every parameter (default: 1e-3, for proposals 1e-2)."""
    clip: float = 1.0
    """Largest global gradient norm."""
    seed: int = 0
    """Seed of weights, order, dropout and directions; the split is the same for all seeds."""
    network: Network = field(default_factory=Network)
    regulariser: Regulariser = field(default_factory=Regulariser)
    proposing: Proposing = field(default_factory=Proposing)
    device: str = "auto"
    """auto, cpu or cuda."""
    threads: int | None = None
    """CPU threads; default: the physical cores."""
    bf16: bool = False
    """Run the network in bfloat16 (worth it on a GPU); regularisers stay in float32."""
    compile: bool = False
    """Compile encoder and predictor with torch.compile; gained nothing on the CPUs measured."""
    log_every: int = 50
    """Steps between two lines of metrics.jsonl."""
    eval_every: int = 500
    """Steps between two measurements on held-out episodes."""
    checkpoint_every: int = 500
    """Steps between two checkpoints: what a kill can cost at most."""

    @property
    def data_path(self) -> Path:
        """The dataset file."""
        return self.data or recipes.data_path(self.env)

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.out or recipes.run_path(self.env, self.objective)

    def check(self) -> None:
        """Refuse numbers that make no sense."""
        for name in ("steps", "batch", "log_every", "eval_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise BadInput(f"--{name.replace('_', '-')} must be at least 1, got {getattr(self, name)}")
        if self.frames is not None and self.frames < 2:
            raise BadInput(f"--frames must be at least 2, one to predict from and one to predict, got {self.frames}")
        if self.inverse < 0 or (self.inverse and self.encoder_from):
            raise BadInput("--inverse is not negative, and teaches the encoder: leave it out with --encoder-from")
        if not (self.teacher_forcing or self.open_loop):
            raise BadInput("--no-teacher-forcing leaves nothing to learn from: add --open-loop")
        if self.batch < 2:
            raise BadInput("--batch must be at least 2: batch normalisation and ranks need company")
        if self.seed < 0 or not 0 <= self.warmup < 1 or (self.schedule or self.steps) < 1:
            raise BadInput("--seed must not be negative, --warmup lies in [0, 1) and --schedule is at least 1")

    def network_settings(self) -> dict[str, Any]:
        """Every setting of the network, for `models.build`."""
        frames = self.make_objective().frames
        changes = {"history": frames - 1} | self.inherited().get("network", {}) | _given(self.network)
        if not 1 <= changes["history"] < frames:
            raise BadInput(f"--history must lie from 1 to {frames - 1}, the frames of a window but the last")
        try:
            return models.settings(self.preset, **changes)
        except ValueError as error:
            raise BadInput(str(error)) from None

    def inherited(self) -> dict[str, Any]:
        """What the run says about itself whose encoder is kept; nothing if there is none."""
        if self.encoder_from is None:
            return {}
        config = read_config(self.encoder_from)
        if (config.get("env"), config.get("preset")) != (self.env, self.preset):
            raise BadInput(f"{self.encoder_from} is not a run of {self.env} with the {self.preset} preset")
        return config

    def make_objective(self, **sizes: int) -> objectives.Objective:
        """The objective, with the settings published for the task unless this run changes them."""
        settings = _given(self.regulariser)
        strength = settings.pop("strength", None)
        if strength is not None and "weight" not in settings:
            try:
                settings["weight"] = objectives.kind_of(self.objective).weight_of(strength, self.batch)
            except ValueError as error:
                raise BadInput(f"the objective {self.objective} {error}") from None
            if settings.get("reduction") == "sum":
                settings["weight"] /= self.batch
        objective = objectives.make(self.objective, task=self.env, **settings, **sizes)
        objective.frames = self.frames or objective.frames
        return objective

    def decay(self) -> float:
        """AdamW's weight decay."""
        return WEIGHT_DECAY if self.weight_decay is None else self.weight_decay

    def peak_lr(self) -> float:
        """The learning rate after warm-up."""
        published = objectives.OBJECTIVES[self.objective].lr
        return self.lr or (published if self.preset == "paper" else COMPACT_LR)


def _given(changes: Any) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(changes).items() if value is not None}
