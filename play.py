"""Watch a task being played.

    python play.py --env pusht --model qqworld.onnx

Opens a window; without a display it writes a video and says where.
"""

import functools
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import imageio.v2 as imageio
import numpy as np
import pygame

import envs
from envs.base import Policy
from envs.errors import BadInput, parse, run

SIDE = 480


@dataclass(frozen=True)
class Play:
    """Watch a task being played."""

    env: str = "pusht"
    """Task: two-room, pusht, reacher or cube."""
    model: str | None = None
    """World-model file; until there is one, the data policy plays."""
    agent: Literal["expert", "random", "zero"] = "expert"
    """Who acts."""
    episodes: int = 3
    """Episodes to play."""
    seed: int = 0
    """Seed of the starts and the actions."""
    headless: bool = False
    """Open no window, even with a display."""
    video: Path | None = None
    """Write a video here; without a display it is qqworld-TASK.mp4 if left out."""


def frames(settings: Play):
    """The pictures of all episodes, uint8 `(SIDE, SIDE, 3)`."""
    task = envs.make(settings.env)
    zero = np.zeros(len(task.action_names))
    for episode in range(settings.episodes):
        rng = np.random.default_rng([settings.seed, episode])
        state = task.start(rng)
        policies: dict[str, Policy] = {
            "expert": task.expert(rng),
            "random": functools.partial(_random, rng, len(zero)),
            "zero": lambda _: zero,
        }
        policy = policies[settings.agent]
        for _ in range(task.episode_steps):
            yield task.picture(SIDE, state)
            state = task.advance(state, policy(state))


def _random(rng: np.random.Generator, size: int, state: np.ndarray) -> np.ndarray:
    return rng.uniform(-1, 1, size)


def main() -> int:
    settings = parse(Play, __doc__)
    if settings.episodes < 1:
        raise BadInput(f"--episodes must be at least 1, got {settings.episodes}")
    fps = round(envs.make(settings.env).control_hz)
    window = not settings.headless and (
        sys.platform != "linux" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    )
    video = settings.video or (None if window else Path(f"qqworld-{settings.env}.mp4"))
    writer = imageio.get_writer(video, fps=fps, macro_block_size=1) if video else None
    screen, clock = (pygame.display.set_mode((SIDE, SIDE)) if window else None), pygame.time.Clock()
    for picture in frames(settings):
        if writer:
            writer.append_data(picture)
        if screen:
            if any(event.type == pygame.QUIT for event in pygame.event.get()):
                break
            pygame.surfarray.blit_array(screen, picture.swapaxes(0, 1))
            pygame.display.flip()
            clock.tick(fps)
    if writer:
        writer.close()
        print(f"video: {video}")
    return 0


if __name__ == "__main__":
    run(main)
