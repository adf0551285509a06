"""Collect a dataset with a task's data policy.

    python -m envs.collect --env pusht

collects what recipes/pusht.toml asks for into data/pusht.h5. The file's content depends on the settings only, not on
the number of workers or on interruptions: stopped at any moment, the same command goes on. Beside the file a contact
sheet (PNG) shows the first episodes.
"""

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import cv2
import numpy as np
from tqdm import tqdm

import envs
from envs import recipes
from envs.base import Task
from envs.dataset.layout import ACTION, PIXELS, PROPRIO, STATE, Attributes, Layout, Look
from envs.dataset.reader import open_dataset
from envs.dataset.writer import Writer, create, differences, disk_error, finished
from envs.errors import BadInput, flag_of, parse_command_line, run

COLLECTOR = 3  # goes up when the same settings give other data
LIBRARIES = ("numpy", "opencv-python-headless", "pymunk", "mujoco", "dm-control", "ogbench")
SHEET = 8

_COLLECT_SPACE = 0xDA7A  # the first word of every collected episode's seed; evaluation pairs have another


@dataclass(frozen=True)
class Collect:
    """Collect a dataset with a task's data policy; run again, the same command goes on where it stopped."""

    env: str
    """Task: two-room, pusht, reacher or cube."""
    out: Path | None = None
    """The HDF5 file to write (default: data/TASK.h5)."""
    episodes: int = 1000
    """Episodes to collect."""
    seed: int = 0
    """Seed; the same seed gives the same file."""
    workers: int | None = None
    """Processes that simulate and render (default: one a core)."""
    steps: int | None = None
    """Control steps of an episode; default: the task's own number."""
    every: int = 1
    """Store a row every N control steps, holding all actions up to the next; 5 makes Cube five times cheaper."""
    stray: float = 0.0
    """Share of the time spent on aimless actions instead of the data policy's: a world model learns what they do."""
    stray_every: int = 1
    """Every N-th episode strays; the others are the data policy's own."""
    size: int | None = None
    """Side of the pictures in pixels; default: 64 in the fast look, 224 in the paper's."""
    look: Look = "fast"
    """How the task looks: fast (for compact models) or paper (as published)."""
    overwrite: bool = False
    """Delete what is at OUT and start again."""

    @property
    def path(self) -> Path:
        """The file to write."""
        return self.out or recipes.data_path(self.env)

    def check(self) -> None:
        """Refuse numbers that make no sense."""
        for name, least in (("episodes", 1), ("seed", 0), ("workers", 1), ("every", 1), ("stray_every", 1)):
            if (value := getattr(self, name)) is not None and value < least:
                raise BadInput(f"--{name.replace('_', '-')} must be at least {least}, got {getattr(self, name)}")
        if not 0 <= self.stray < 1:
            raise BadInput(f"--stray is a share from 0 up to, but not including, 1, got {self.stray}")

    def make_task(self) -> Task:
        """The task with this collection's look and size."""
        return envs.make(self.env, size=self.size, look=self.look)

    def episode_steps(self, task: Task) -> int:
        """Control steps of an episode, checked against `every`."""
        steps = task.episode_steps if self.steps is None else self.steps
        if steps < 1 or steps % self.every:
            raise BadInput(f"an episode of {steps} steps cannot be stored every {self.every}: give a whole multiple")
        return steps

    def layout(self, task: Task) -> Layout:
        """The size of everything in the file."""
        return Layout(
            episodes=self.episodes,
            rows=self.episode_steps(task) // self.every + 1,
            size=task.size,
            action=len(task.action_names) * self.every,
            state=len(task.state_names),
            proprio=len(task.proprio),
        )

    def attributes(self, task: Task) -> Attributes:
        """What the file says about itself; equal attributes mean equal data."""
        return Attributes(
            task=self.env,
            seed=self.seed,
            episodes=self.episodes,
            steps=self.episode_steps(task),
            frame_skip=self.every,
            stray=self.stray,
            stray_every=self.stray_every,
            look=self.look,
            size=task.size,
            action_dim=len(task.action_names),
            action_names=task.action_names,
            state_names=task.state_names,
            control_hz=task.control_hz,
            gl=os.environ.get("MUJOCO_GL", "none") if "mujoco" in sys.modules else "none",
            collector=COLLECTOR,
            versions={name: metadata.version(name) for name in LIBRARIES},
        )


def collect(settings: Collect, progress: bool = True) -> str:
    """Collect (or go on collecting) a dataset and return the summary of it."""
    settings.check()
    task, out = settings.make_task(), settings.path
    layout, attributes = settings.layout(task), settings.attributes(task)
    partial = out.with_name(out.name + ".partial")
    if settings.overwrite:
        out.unlink(missing_ok=True)
        partial.unlink(missing_ok=True)
    for path in (out, partial):
        if path.exists() and (other := differences(path, attributes)):
            raise BadInput(f"{path} holds other data ({'; '.join(other)}): give another --out, or --overwrite it")
    if not out.exists():
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(error, out) from error
        if not partial.exists():
            create(partial, layout, attributes)
        todo = np.flatnonzero(~finished(partial)).tolist()
        _fill(settings, partial, todo, layout, progress)
        os.replace(partial, out)
    cv2.imwrite(str(out.with_suffix(".png")), contact_sheet(out)[..., ::-1])
    return summary(task, out)


def _fill(settings: Collect, path: Path, todo: list[int], layout: Layout, progress: bool) -> None:
    """Write the episodes `todo` into the file at `path`, with a bar that counts frames."""
    interval = 0.5 if sys.stderr.isatty() else 30.0
    with tqdm(
        total=layout.episodes * layout.rows,
        initial=(layout.episodes - len(todo)) * layout.rows,
        desc=settings.env,
        unit=" frames",
        mininterval=interval,
        disable=not progress,
    ) as bar:
        for _ in _episodes(settings, path, todo):
            bar.update(layout.rows)


def _episodes(settings: Collect, path: Path, todo: list[int]) -> Iterator[int]:
    """Record the episodes `todo`, here or in worker processes, and yield each when it is safely in the file."""
    workers = settings.workers or os.cpu_count() or 1
    if workers == 1:
        recorder = Recorder(settings, path)
        for episode in todo:
            yield recorder.record(episode)
        recorder.writer.close()
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker, (settings, path)) as pool:
        pending: set[Future[int]] = set()
        queue = deque(todo)
        try:
            while queue or pending:
                while queue and len(pending) < 2 * workers:
                    pending.add(pool.submit(_record, queue.popleft()))
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool as error:
            raise BadInput("a worker process was killed: run the same command again, it goes on") from error
        finally:
            pool.shutdown(cancel_futures=True)


class Recorder:
    """Simulates episodes, draws them and writes them into the file."""

    def __init__(self, settings: Collect, path: Path):
        self.settings = settings
        self.task = settings.make_task()
        self.writer = Writer(path, settings.layout(self.task))

    def record(self, episode: int) -> int:
        """Record one episode; all its randomness comes from its own seed."""
        every, task = self.settings.every, self.task
        rng = np.random.default_rng([_COLLECT_SPACE, self.settings.seed, episode])
        stray = 0.0 if episode % self.settings.stray_every else self.settings.stray
        states, actions = task.episode(rng, self.settings.episode_steps(task), stray)
        rows = states[::every]
        action = np.full((len(rows), every * actions.shape[1]), np.nan, np.float32)  # no action leaves the last frame
        action[:-1] = actions.reshape(len(rows) - 1, -1)
        pixels = np.stack([task.draw(state) for state in rows])
        self.writer.write(episode, {PIXELS: pixels, ACTION: action, STATE: rows, PROPRIO: rows[:, task.proprio]})
        return episode


_recorder: Recorder


def _start_worker(settings: Collect, path: Path) -> None:
    global _recorder
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    threading.Thread(target=_die_with_parent, daemon=True).start()
    os.environ.setdefault("LP_NUM_THREADS", "1")  # one process a core renders faster than two that share both
    cv2.setNumThreads(1)
    _recorder = Recorder(settings, path)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _record(episode: int) -> int:
    return _recorder.record(episode)


def summary(task: Task, path: Path) -> str:
    """What was collected, in a few lines."""
    data = open_dataset(path)
    assert data.state is not None
    episodes, frames, skip = len(data.length), len(data.pixels), data.frame_skip
    states = data.state.reshape(episodes, frames // episodes, -1)
    action = data.action.reshape(-1, data.action_dim)
    apart = max(1, envs.OFFSET // skip)
    moves = task.moved(states[:, :-apart], states[:, apart:]).mean() if states.shape[1] > apart else float("nan")
    mean, std = (np.array2string(f(action, axis=0), precision=3) for f in (np.nanmean, np.nanstd))
    return (
        f"{path}: {episodes} episodes, {frames} frames, {path.stat().st_size / 1e6:.1f} MB\n"
        f"windows of {apart * skip} steps in which the goal object moves: {100 * moves:.1f} %\n"
        f"action mean {mean}, std {std} ({', '.join(task.action_names)})"
    )


def contact_sheet(path: Path, side: int = 128) -> np.ndarray:
    """Eight episodes (rows) by eight frames each as one picture, uint8."""
    data = open_dataset(path)
    lines = []
    for first, rows in list(zip(data.offset, data.length, strict=True))[:SHEET]:
        frames = data.pixels[first + np.linspace(0, rows - 1, SHEET).astype(int)]
        tiles = (cv2.resize(frame, (side, side), interpolation=cv2.INTER_NEAREST) for frame in frames)
        lines.append(np.hstack([np.pad(tile, ((2, 2), (2, 2), (0, 0)), constant_values=128) for tile in tiles]))
    return np.vstack(lines)


def main() -> int:
    env = flag_of("env")
    settings = parse_command_line(Collect, __doc__, default=recipes.apply(Collect(env), env, "data") if env else None)
    started = time.perf_counter()
    try:
        text = collect(settings)
    except KeyboardInterrupt:
        print(f"stopped: run the same command again to go on with {settings.path}", file=sys.stderr)
        return 130
    print(text)
    print(f"{time.perf_counter() - started:.1f} s in all")
    return 0


def command() -> None:
    """The installed program."""
    run(main)


if __name__ == "__main__":
    command()
