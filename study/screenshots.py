"""Pictures of the window for the documentation: one of each task, and a short GIF.

    python -m study.screenshots --out docs

Writes window-TASK.png for every task and play.gif.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path

import cv2
import imageio.v3 as imageio
import numpy as np
from PIL import Image
from tqdm import tqdm

import envs
from agent.episodes.sequence import SequenceSettings
from agent.episodes.settings import EpisodeSettings
from agent.factory import make_agent
from agent.viewer.frame import View
from agent.viewer.threads import Playback, make_playback
from envs.errors import BadInput, parse_command_line, run

GIF_WIDTHS, GIF_COLOURS, GIF_BYTES = (900, 760, 620), 96, 3e6


@dataclass(frozen=True)
class Screenshots:
    """Pictures of the window for the documentation."""

    out: Path = Path("docs")
    """Folder for the pictures."""
    tasks: tuple[str, ...] = tuple(envs.TASKS)
    """Tasks to show."""
    model: str = "qqworld.onnx"
    """World model that plans."""
    plan: tuple[str, ...] = ()
    """Settings of the planner."""
    seed: int = 100
    """Seed of the pairs."""
    step: int = 8
    """Which step of the first episode to show."""
    gif: str | None = "pusht"
    """Task of the GIF."""
    seconds: float = 10.0
    """Length of the GIF."""


def playback_of(settings: Screenshots, task: str) -> Playback:
    """A playback of the task, with its stored frames ready."""
    episode = EpisodeSettings(task, plan=settings.plan)
    playback = make_playback(make_agent(episode, settings.model), SequenceSettings(episode, settings.seed))
    playback.renderer.latent_images.wait(60)
    return playback


def take_screenshot(settings: Screenshots, task: str) -> np.ndarray:
    """The frame at the chosen step."""
    playback = playback_of(settings, task)
    for record in itertools.islice(playback.sequence, settings.step + 1):
        playback.show([record], View())
    playback.close()
    assert playback.canvas is not None
    return playback.canvas.pixels


def record_frames(settings: Screenshots, task: str) -> tuple[list[np.ndarray], float]:
    """The first frames of a sequence, and how many there are in a second."""
    playback = playback_of(settings, task)
    frames = []
    hz = playback.sequence.task.control_hz
    count = round(settings.seconds * hz)
    for record in tqdm(itertools.islice(playback.sequence, count), total=count, desc=task):
        playback.show([record], View())
        assert playback.canvas is not None
        frames.append(playback.canvas.pixels)
    playback.close()
    return frames, hz


def save_gif(path: Path, frames: list[np.ndarray], hz: float) -> None:
    """A GIF as large as it may be; its frames share a palette without dithering, so that what stands still is cheap."""
    for width in GIF_WIDTHS:
        height = round(width * frames[0].shape[0] / frames[0].shape[1])
        images = [Image.fromarray(cv2.resize(frame, (width, height), interpolation=cv2.INTER_AREA)) for frame in frames]
        sample = Image.fromarray(
            np.concatenate([np.asarray(image)[::3, ::3] for image in images[:: max(1, len(images) // 8)]])
        )
        palette = sample.quantize(GIF_COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
        first, *rest = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images)
        first.save(path, save_all=True, append_images=rest, duration=round(1e3 / hz), loop=0)
        if path.stat().st_size < GIF_BYTES:
            return


def main() -> int:
    settings = parse_command_line(Screenshots, __doc__)
    if not settings.out.is_dir():
        raise BadInput(f"there is no folder {settings.out} to put the pictures in")
    for task in settings.tasks:
        path = settings.out / f"window-{task}.png"
        imageio.imwrite(path, take_screenshot(settings, task))
        print(f"saved {path}")
    if settings.gif:
        save_gif(settings.out / "play.gif", *record_frames(settings, settings.gif))
        print(f"saved {settings.out / 'play.gif'}")
    return 0


if __name__ == "__main__":
    run(main)
