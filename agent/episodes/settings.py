"""The settings that every command which runs episodes has."""

from dataclasses import dataclass

import envs
from envs import OFFSET, BadInput


@dataclass(frozen=True)
class EpisodeSettings:
    """How each episode goes."""

    env: str
    """Task: two-room, pusht, reacher or cube."""
    steps: int | None = None
    """Control steps of an episode (default: twice the offset)."""
    offset: int = OFFSET
    """How many steps of the data policy lie between start and goal: 50 or 100 for far goals."""
    planner: str | None = None
    """Planner: cem, guided (by proposals), propose (those alone), lewm (as published), mppi or shooting (default: the
    one that the model was tuned for)."""
    plan: tuple[str, ...] = ()
    """Settings of the planner, for example: candidates=200 iterations=5 replan=1 cost=min."""
    plan_ms: float | None = None
    """Time for one plan; without it a plan takes the time it takes and the results do not depend on the machine."""
    realtime: bool = False
    """Run at the task's control rate, with the planner in its own thread, instead of waiting for plans."""
    device: str = "auto"
    """Where model files run: auto, cpu or cuda."""

    @property
    def limit(self) -> int:
        """Control steps of an episode."""
        return self.steps or 2 * self.offset

    def check(self) -> None:
        """Refuse what makes no sense."""
        if self.env not in envs.TASKS:
            raise BadInput(f"unknown task '{self.env}': choose one of {', '.join(envs.TASKS)}")
        at_least(1, steps=self.steps, offset=self.offset)
        above_zero(plan_ms=self.plan_ms)


def at_least(least: int, **flags: int | None) -> None:
    """Refuse flags below `least`; None is a flag that was not given."""
    for name, value in flags.items():
        if value is not None and value < least:
            raise BadInput(f"--{name} must be at least {least}, got {value}")


def above_zero(**flags: float | None) -> None:
    """Refuse flags that are not above 0; None is a flag that was not given."""
    for name, value in flags.items():
        if value is not None and not value > 0:
            raise BadInput(f"--{name.replace('_', '-')} must be above 0, got {value}")
