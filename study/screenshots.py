"""Pictures of the window for the documentation: one of each task, and a short film.

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
from agent.episodes.sequence import Settings
from agent.factory import make_agent, make_playback
from agent.viewer.frame import View
from agent.viewer.threads import Playback
from agent.world_models.registry import PRETRAINED
from envs.errors import BadInput, parse, run

SHIPPED = "qqworld.onnx"
QUICK = ("candidates=48", "iterations=6", "cost=sum", "colour=2", "answer=best")
"""Settings with which the simulator, a slow model, plans."""
GIF_WIDTHS, GIF_COLOURS, GIF_BYTES = (900, 760, 620), 96, 3e6


@dataclass(frozen=True)
class Screenshots:
    """Pictures of the window for the documentation."""

    out: Path = Path("docs")
    """Folder for the pictures."""
    tasks: tuple[str, ...] = tuple(envs.TASKS)
    """Tasks to show."""
    model: str | None = None
    """World model that plans; what is shipped for the task, or else the simulator, if left out."""
    plan: tuple[str, ...] = ()
    """Settings of the planner."""
    seed: int = 100
    """Seed of the pairs."""
    step: int = 8
    """Which step of the first episode to show."""
    film: str | None = "pusht"
    """Task of the film."""
    seconds: float = 10.0
    """Length of the film."""


def playback_of(settings: Screenshots, task: str) -> Playback:
    """Where a task is played for its picture."""
    shipped = (PRETRAINED / task / SHIPPED).exists()
    model = settings.model or (SHIPPED if shipped else "simulator")
    agent = make_agent(task, model, plan=settings.plan or (QUICK if model == "simulator" else ()))
    playback = make_playback(task, agent, settings=Settings(seed=settings.seed))
    playback.renderer.latent_images.wait(60)
    return playback


def shoot(settings: Screenshots, task: str) -> np.ndarray:
    """The frame at the chosen step."""
    playback = playback_of(settings, task)
    for record in itertools.islice(playback.sequence, settings.step + 1):
        playback.show([record], View())
    playback.close()
    assert playback.canvas is not None
    return playback.canvas.pixels


def film(settings: Screenshots, task: str) -> tuple[list[np.ndarray], float]:
    """The first frames of a sequence, and how many there are in a second."""
    playback, frames = playback_of(settings, task), []
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
    settings = parse(Screenshots, __doc__)
    if not settings.out.is_dir():
        raise BadInput(f"there is no folder {settings.out} to put the pictures in")
    for task in settings.tasks:
        path = settings.out / f"window-{task}.png"
        imageio.imwrite(path, shoot(settings, task))
        print(f"saved {path}")
    if settings.film:
        save_gif(settings.out / "play.gif", *film(settings, settings.film))
        print(f"saved {settings.out / 'play.gif'}")
    return 0


if __name__ == "__main__":
    run(main)
