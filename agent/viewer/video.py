"""Frames into files: videos that are whole however the programme ends, and screenshots."""

import contextlib
import itertools
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import imageio.v2 as imageio
import numpy as np

from envs import BadInput

SUFFIXES = (".mp4", ".mkv", ".mov", ".gif")


class Video:
    """Writes frames to `path` at `fps` as H.264, or as a GIF where the name says so; also a context manager."""

    def __init__(self, path: Path, fps: float):
        if path.suffix.lower() not in SUFFIXES:
            raise BadInput(f"a video cannot be written to {path}: give it one of the endings {', '.join(SUFFIXES)}")
        if not path.parent.is_dir():
            raise BadInput(f"a video cannot be written to {path}: the folder {path.parent} does not exist")
        settings: dict[str, Any] = {"fps": fps, "codec": "libx264", "quality": 7, "macro_block_size": 2}
        if path.suffix.lower() == ".gif":
            settings = {"duration": 1e3 / fps, "loop": 0}
        self.path, self.frames = path, 0
        try:
            self._writer = imageio.get_writer(path, **settings)
        except OSError as error:
            raise BadInput(f"a video cannot be written to {path}: {error.strerror or error}") from error

    def add(self, frame: np.ndarray) -> None:
        """Append one frame, uint8 `(H, W, 3)`."""
        with _without_interrupts():
            self._writer.append_data(frame)
        self.frames += 1

    def close(self) -> None:
        """Finish the file."""
        with _without_interrupts():
            self._writer.close()

    def __enter__(self) -> "Video":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Recordings:
    """Videos and screenshots of a task in a folder, which is made when it is needed."""

    def __init__(self, folder: Path, task: str):
        self.folder = folder
        self.task = task
        self.saved: list[Path] = []

    def video(self, fps: float) -> Video:
        """A new video."""
        path = self._unused("mp4")
        video = Video(path, fps)
        self.saved.append(path)
        return video

    def screenshot(self, pixels: np.ndarray) -> Path:
        """Save pixels uint8 `(H, W, 3)` as a new picture."""
        path = self._unused("png")
        try:
            imageio.imwrite(path, pixels)
        except OSError as error:
            raise BadInput(f"the screenshot cannot be written to {path}: {error.strerror or error}") from error
        self.saved.append(path)
        return path

    def _unused(self, suffix: str) -> Path:
        """A file name that is not taken."""
        with contextlib.suppress(OSError):  # whoever writes the file says what is wrong
            self.folder.mkdir(parents=True, exist_ok=True)
        names = (self.folder / f"qqworld-{self.task}-{number}.{suffix}" for number in itertools.count(1))
        return next(path for path in names if not path.exists() and path not in self.saved)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait until a frame is whole. The encoder, which starts with the first one, must not get it at all."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    main = threading.current_thread() is threading.main_thread()  # Python runs handlers there whichever thread is hit
    interrupts: list[tuple[int, FrameType | None]] = []
    handler = signal.signal(signal.SIGINT, lambda *interrupt: interrupts.append(interrupt)) if main else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited by the encoder
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if main:
            signal.signal(signal.SIGINT, handler)
    if interrupts and callable(handler):
        handler(*interrupts[0])
