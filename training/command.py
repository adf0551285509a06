"""What the training commands share: what they say, how they stop, and their exit status."""

import signal
import sys
from typing import Any, Protocol

from tqdm import tqdm

from training.phases.trainer import Diverged


class Trains(Protocol):
    """A trainer as a command sees it."""

    step: int
    config: Any

    def run(self) -> dict[str, float]:
        """Train to the last step or to `stop()`; the last measurements."""

    def stop(self) -> None:
        """End after the current step."""


def say(text: str) -> None:
    """One line for the person at the terminal, above the progress bar."""
    tqdm.write(text, file=sys.stderr)


def conduct(trainer: Trains) -> int:
    """Run a trainer to its end or to an interrupt, say what came of it, and return the exit status."""
    told: list[int] = []

    def stop(number: int, _: object) -> None:
        told.append(number)
        trainer.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        measured = trainer.run()
    except Diverged as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if trainer.step < trainer.config.steps:
        say(f"stopped at step {trainer.step}: run the same command again to go on")
        return 130
    say(f"finished at step {trainer.step}: " + ", ".join(f"{name} {value:.3g}" for name, value in measured.items()))
    return 130 if told else 0  # told to stop after the last step: the next phase does not begin
