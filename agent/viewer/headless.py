"""A sequence without a window: the same frames, one for every record, straight into the video."""

import sys
import time
from collections.abc import Iterator

from tqdm import tqdm

from agent.viewer.frame import View
from agent.viewer.threads import Playback

PATIENCE_S = 5.0
"""How long a video waits for stored frames before it begins."""
TERMINAL_S, FILE_S = 0.5, 10
"""How often the progress bar moves on a terminal, and where its lines pile up."""


def run_headless(playback: Playback) -> None:
    """Play a sequence of a known number of episodes to its end under a progress bar."""
    settings = playback.sequence.settings
    assert settings.episodes is not None
    playback.renderer.latent_images.wait(PATIENCE_S)
    with tqdm(
        total=settings.episodes * (settings.episode.limit + 1),
        desc=playback.sequence.task.name,
        unit="step",
        dynamic_ncols=True,
        mininterval=TERMINAL_S if sys.stderr.isatty() else FILE_S,
    ) as bar:
        for taken in _in_time(playback) if settings.episode.realtime else _in_turn(playback):
            bar.set_postfix_str(f"success {playback.hud.rate}", refresh=False)
            bar.update(taken)


def _in_turn(playback: Playback) -> Iterator[int]:
    """Play, draw, play, draw; yields how many steps were taken."""
    for record in playback.sequence:
        playback.show([record], View())
        yield 1


def _in_time(playback: Playback) -> Iterator[int]:
    """Draw beside a world that does not wait."""
    taken = 0
    playback.start()
    while not playback.over:
        time.sleep(0.1)
        yield playback.count - taken
        taken = playback.count
    playback.close()
    if playback.error:
        raise playback.error
