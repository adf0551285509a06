"""A session without a window: the same frames, one for every record, straight into the video."""

import sys
import time
from collections.abc import Iterator

from tqdm import tqdm

from agent.viewer.frame import View
from agent.viewer.threads import Stage

PATIENCE_S = 5.0
"""How long a film waits for stored frames before it begins."""
TERMINAL_S, FILE_S = 0.5, 10
"""How often the progress bar moves on a terminal, and where its lines pile up."""


def film(stage: Stage) -> None:
    """Play a session of a known number of episodes to its end under a progress bar."""
    settings = stage.session.settings
    assert settings.episodes is not None
    stage.easel.imagination.wait(PATIENCE_S)
    with tqdm(
        total=settings.episodes * (settings.steps + 1),
        desc=stage.session.task.name,
        unit="step",
        dynamic_ncols=True,
        mininterval=TERMINAL_S if sys.stderr.isatty() else FILE_S,
    ) as bar:
        for taken in _in_time(stage) if settings.realtime else _in_turn(stage):
            bar.set_postfix_str(f"success {stage.history.rate}", refresh=False)
            bar.update(taken)


def _in_turn(stage: Stage) -> Iterator[int]:
    """Play, draw, play, draw; yields how many steps were taken."""
    for record in stage.session:
        stage.show([record], View())
        yield 1


def _in_time(stage: Stage) -> Iterator[int]:
    """Draw beside a world that does not wait."""
    taken = 0
    stage.start()
    while not stage.over:
        time.sleep(0.1)
        yield stage.count - taken
        taken = stage.count
    stage.close()
    if stage.error:
        raise stage.error
