"""Measure training: where a step's time goes, how near it is to the machine's limit, and what batch and queue cost.

    python -m training.measures.step_time --out docs/training-bench.md

Every time is the shortest of several repetitions, because other programs on the machine can only add to it.
"""

import platform
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

import models
from envs.dataset.reader import Dataset
from envs.errors import BadInput, parse_command_line, run
from training import objectives
from training.data.windows import Order, Windows
from training.machine import threads
from training.objectives import qqworld
from training.objectives.base import directions, project
from training.phases.learner import Learner

ACTION_DIM = 2
MEMORY_STEPS = 6


@dataclass(frozen=True)
class Bench:
    """What to measure."""

    presets: tuple[str, ...] = ("compact", "paper")
    """Presets to measure."""
    batches: tuple[int, ...] = (128, 16)
    """Windows per step, one for each preset; 128 of the paper's do not fit in 24 GB."""
    objective: str = "qqworld"
    """Objective to measure with."""
    repeats: int = 10
    """Repetitions of each timing; the paper preset gets a fifth of them."""
    memory_batches: tuple[int, ...] = (32, 64, 128)
    """Batch sizes of the memory table (compact preset)."""
    queues: tuple[int, ...] = (0, 1, 3)
    """Queue lengths K of the memory table."""
    threads: int | None = None
    """CPU threads; default: the physical cores."""
    out: Path | None = None
    """Markdown file to write; printed in any case."""


def best(repeats: int, functions: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The shortest time of each function in seconds; they take turns, so that all meet the same noise."""
    times = dict.fromkeys(functions, float("inf"))
    for turn in range(repeats + 1):
        for name, function in functions.items():
            began = time.perf_counter()
            function()
            if turn:
                times[name] = min(times[name], time.perf_counter() - began)
    return times


def gemm_rate(repeats: int) -> float:
    """Floating-point operations per second of a large float32 matrix product: the machine's limit."""
    side = 1536
    a, b = torch.randn(side, side), torch.randn(side, side)
    return 2 * side**3 / best(repeats, {"gemm": lambda: a @ b})["gemm"]


def random_windows(side: int, frames: int) -> Windows:
    """Windows of a dataset of noise in memory."""
    rng = np.random.default_rng(0)
    rows = 2000 if side <= 64 else 400
    data = Dataset(
        path=Path("noise"),
        pixels=rng.integers(0, 256, (rows, side, side, 3), dtype=np.uint8),
        action=rng.normal(size=(rows, ACTION_DIM)).astype(np.float32),
        state=None,
        offset=np.array([0]),
        length=np.array([rows]),
        task=None,
        frame_skip=1,
        state_names=(),
        strays=np.array([False]),
    )
    return Windows.of(data, np.array([0]), frames, 5, np.zeros(ACTION_DIM))


def learner_of(preset: str, objective: str, queue: int = 0) -> Learner:
    """A learner with the objective's own settings."""
    frames = objectives.OBJECTIVES[objective].frames
    model = models.build(preset, action_dim=ACTION_DIM, history=frames - 1)
    settings: dict[str, Any] = {"queue": queue} if queue else {}
    return Learner(model, objectives.make(objective, latent=model.latent, action_size=5 * ACTION_DIM, **settings))


def step_times(settings: Bench, preset: str, batch: int, rate: float) -> dict[str, float]:
    """Seconds of each part of a training step, frames per second, and the share of the machine's limit."""
    repeats = settings.repeats if preset == "compact" else max(1, settings.repeats // 5)
    learner = learner_of(preset, settings.objective)
    model, frames = learner.model, learner.objective.frames
    windows = random_windows(model.image_size, frames)
    order = Order(len(windows), batch, seed=0)
    optimiser = torch.optim.AdamW(learner.parameters(), fused=True)
    pixels, actions = (torch.from_numpy(part(order[0])) for part in (windows.pixels, windows.actions))
    generator = torch.Generator()
    leaf = model.encode(pixels).detach().requires_grad_()

    def encoder() -> None:
        model.encode(pixels).backward(torch.ones_like(leaf))

    def predictor() -> None:
        (model.predict(leaf[:, :-1], actions[:, :-1]) - leaf[:, 1:]).square().mean().backward()

    def regulariser() -> None:
        terms = learner.objective.terms(leaf.transpose(0, 1), actions.transpose(0, 1), generator)
        torch.stack(list(terms.values())).sum().backward()

    def whole() -> None:
        optimiser.zero_grad()
        learner(pixels, actions, generator).total.backward()
        torch.nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
        optimiser.step()

    units = directions(1024, model.latent, generator, leaf)
    samples = project(leaf.detach().transpose(0, 1), units)
    with FlopCounterMode(display=False) as counter:
        whole()
    parts: dict[str, Callable[[], object]] = {
        "step": whole,
        "encoder": encoder,
        "predictor": predictor,
        "regulariser": regulariser,
        "sort": lambda: qqworld.targets(samples),
        "optimiser": optimiser.step,
        "data": lambda: (windows.pixels(order[1]), windows.actions(order[1])),
    }
    measured = best(repeats, parts)
    measured["frames_per_second"] = batch * frames / (measured["step"] + measured["data"])
    measured["gflop"] = counter.get_total_flops() / 1e9
    measured["limit"] = counter.get_total_flops() / measured["step"] / rate
    with torch.no_grad():
        model.eval()
        plans = 1000 if preset == "compact" else 100
        context, blocks = torch.randn(1, 1, model.latent), torch.randn(plans, 5, 5 * ACTION_DIM)
        empty = torch.empty(1, 0, 5 * ACTION_DIM)
        rolled = best(max(1, repeats // 2), {"plans": lambda: model.rollout(context, empty, blocks)})
    return measured | {"plans": rolled["plans"] * 1000 / plans}


def peak_memory(preset: str, batch: int, queue: int, count: int) -> float:
    """Peak resident memory in MB that a few training steps add to a fresh process."""
    torch.set_num_threads(count)
    learner = learner_of(preset, "qqworld", queue)
    optimiser = torch.optim.AdamW(learner.parameters(), fused=True)
    windows = random_windows(learner.model.image_size, 4)
    before = peak_mb()
    for step in range(MEMORY_STEPS):
        index = Order(len(windows), batch, seed=0)[step]
        pixels, actions = torch.from_numpy(windows.pixels(index)), torch.from_numpy(windows.actions(index))
        optimiser.zero_grad()
        learner(pixels, actions, torch.Generator()).total.backward()
        optimiser.step()
    return peak_mb() - before


def peak_mb() -> float:
    """The most memory this process ever held; `getrusage` would count that of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def report(settings: Bench) -> str:
    """All measurements as markdown."""
    if len(settings.presets) != len(settings.batches):
        raise BadInput("--batches needs one number for each of --presets")
    count = settings.threads or threads()
    torch.set_num_threads(count)
    rate = gemm_rate(5 * settings.repeats)
    lines = [
        "# What a training step costs",
        "",
        "Made by `python -m training.measures.step_time --out docs/training-bench.md`: shortest of several "
        f"repetitions, {count} CPU threads on {platform.machine()}, torch {torch.__version__}, "
        f"objective {settings.objective}. "
        f"A large float32 matrix product reaches {rate / 1e9:.0f} GFLOP/s here.",
        "",
        "| | "
        + " | ".join(f"{p}, {b} windows" for p, b in zip(settings.presets, settings.batches, strict=True))
        + " |",
        "|---|" + "---|" * len(settings.presets),
    ]
    found = [
        step_times(settings, preset, batch, rate)
        for preset, batch in zip(settings.presets, settings.batches, strict=True)
    ]

    def row(title: str, cell: Callable[[dict[str, float]], str]) -> None:
        lines.append(f"| {title} | " + " | ".join(cell(times) for times in found) + " |")

    def share(part: str) -> Callable[[dict[str, float]], str]:
        return lambda times: f"{1e3 * times[part]:.1f} ms ({100 * times[part] / times['step']:.1f} %)"

    row("encoder, forward and backward", share("encoder"))
    row("predictor, forward and backward", share("predictor"))
    row("regulariser, forward and backward", share("regulariser"))
    row("of which the sort", share("sort"))
    row("optimiser", share("optimiser"))
    row("reading the batch", share("data"))
    row("whole step", lambda t: f"{1e3 * t['step']:.0f} ms")
    row("**training frames per second**", lambda t: f"**{t['frames_per_second']:.0f}**")
    row("arithmetic of a step", lambda t: f"{t['gflop']:.0f} GFLOP")
    row("share of the matrix-product rate", lambda t: f"{100 * t['limit']:.0f} %")
    row("1,000 plans of 5 blocks, rolled out naively in torch", lambda t: f"{1e3 * t['plans']:.0f} ms")
    lines += ["", "## Memory", ""]
    lines += [
        "Peak resident memory that training adds (compact preset, qqworld), in MB, by batch N and queue length K."
    ]
    lines += [
        "The queue itself holds K x 4 x N x 192 floats; the rest of what it costs is the ranking of N (K + 1) samples"
    ]
    lines += ["along 1024 directions, which no gradient has to remember.", ""]
    lines += ["| windows N | " + " | ".join(f"K = {queue}" for queue in settings.queues) + " | queue of the last |"]
    lines += ["|---|" + "---|" * (len(settings.queues) + 1)]
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for batch in settings.memory_batches:
            peaks = [pool.submit(peak_memory, "compact", batch, queue, count).result() for queue in settings.queues]
            held = settings.queues[-1] * 4 * batch * 192 * 4 / 1e6
            lines.append(f"| {batch} | " + " | ".join(f"{peak:.0f}" for peak in peaks) + f" | {held:.1f} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    settings = parse_command_line(Bench, __doc__, arguments)
    text = report(settings)
    print(text)
    if settings.out:
        settings.out.write_text(text)
    return 0


if __name__ == "__main__":
    run(main)
