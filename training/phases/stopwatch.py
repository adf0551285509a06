"""Times training steps."""

import time


class Stopwatch:
    """How fast steps go, and which share of their time is spent waiting for data."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Count again from zero."""
        self.steps = 0
        self.seconds = 0.0
        self.waiting = 0.0

    def __enter__(self) -> None:
        self.began = time.perf_counter()

    def loaded(self) -> None:
        """The batch is there; what follows is computing."""
        self.waiting += time.perf_counter() - self.began

    def __exit__(self, *_: object) -> None:
        self.steps += 1
        self.seconds += time.perf_counter() - self.began

    def read(self, frames: int) -> dict[str, float]:
        """Frames per second and the share of waiting since the last reading, for steps of `frames` frames."""
        speed = {"frames_per_second": self.steps * frames / self.seconds, "waiting": self.waiting / self.seconds}
        self.reset()
        return speed
