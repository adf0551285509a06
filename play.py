"""Watch an agent plan with a world model.

    python play.py --env pusht --model qqworld.onnx

Opens a window (H shows its keys); without a display it writes a video and says where.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import envs
from agent.episodes.sequence import Settings
from agent.factory import make_agent, make_playback
from agent.viewer.app import Viewer
from agent.viewer.frame import provider
from agent.viewer.headless import run_headless
from agent.viewer.video import Video
from agent.viewer.window import has_display
from agent.world_models.registry import PRETRAINED
from envs import OFFSET
from envs.errors import BadInput, parse, run

SHIPPED = "qqworld.onnx"
VIDEO_EPISODES = 3


@dataclass(frozen=True)
class Play:
    """Watch an agent plan with a world model."""

    env: str = "pusht"
    """Task: two-room, pusht, reacher or cube."""
    model: str = SHIPPED
    """World model: a file, a name under pretrained/TASK/, package.module:Class, or simulator (the true task)."""
    agent: Literal["model", "random", "zero", "expert"] = "model"
    """Who acts: the model's planner, or a rule that knows nothing of the goal."""
    episodes: int | None = None
    """Episodes to play; a window goes on until it is closed if left out, a video has 3."""
    steps: int | None = None
    """Control steps of an episode; twice the offset if left out."""
    offset: int = OFFSET
    """How many steps of the data policy lie between start and goal: 50 or 100 for far goals."""
    seed: int = 0
    """Seed of the start and goal pairs and of everything random."""
    goal: str = "pair"
    """Goal: pair, random, a picture (IMAGE.png), or the numbers of a state with commas (120,60)."""
    planner: str | None = None
    """Planner: cem, guided (by proposals), propose (those alone), lewm (as published), mppi or shooting; the one that
    the model was tuned for if left out."""
    plan: tuple[str, ...] = ()
    """Settings of the planner, for example: candidates=200 iterations=5 replan=1 cost=min."""
    plan_ms: float | None = None
    """Time for one plan; without it a plan takes the time it takes."""
    realtime: bool = False
    """Run at the task's control rate, with the planner in its own thread, instead of waiting for plans."""
    device: str = "auto"
    """Where a model file runs: auto, cpu or cuda."""
    headless: bool = False
    """Open no window, even with a display."""
    video: Path | None = None
    """Write a video here; without a window it is qqworld-TASK.mp4 if left out."""
    log: Path | None = None
    """Append one line of JSON for every episode to this file."""

    def check(self) -> None:
        """Refuse what makes no sense."""
        for name, least in (("episodes", 1), ("steps", 1), ("offset", 1), ("seed", 0)):
            if (value := getattr(self, name)) is not None and value < least:
                raise BadInput(f"--{name} must be at least {least}, got {value}")
        if self.plan_ms is not None and not self.plan_ms > 0:
            raise BadInput(f"--plan-ms must be above 0, got {self.plan_ms}")
        if self.env not in envs.TASKS:
            raise BadInput(f"unknown task '{self.env}': choose one of {', '.join(envs.TASKS)}")
        if self.log and not self.log.parent.is_dir():
            raise BadInput(f"the log {self.log} cannot be written: the folder {self.log.parent} does not exist")


def cast(settings: Play) -> Any:
    """Who acts; where no model has been shipped for the task yet, the data policy stands in and says so."""
    rule = None if settings.agent == "model" else settings.agent
    shipped = list((PRETRAINED / settings.env).glob("*.onnx"))
    if rule is None and settings.model == SHIPPED and not shipped and not Path(SHIPPED).exists():
        print(f"there is no {SHIPPED} for {settings.env} yet, so its scripted expert plays instead")
        rule = "expert"
    return make_agent(
        settings.env,
        settings.model,
        rule,
        settings.planner,
        settings.plan,
        settings.plan_ms,
        settings.realtime,
        settings.device,
    )


def play(settings: Play) -> None:
    """Play in a window or into a video, and say what came of it."""
    settings.check()
    agent = cast(settings)
    window = not settings.headless and has_display()
    path = settings.video or (None if window else Path(f"qqworld-{settings.env}.mp4"))
    episodes = settings.episodes or (None if window else VIDEO_EPISODES)
    steps = settings.steps or 2 * settings.offset
    chosen = Settings(settings.seed, episodes, steps, settings.offset, settings.realtime, settings.log)
    with contextlib.closing(make_playback(settings.env, agent, settings.goal, chosen)) as playback:
        if path:
            playback.record(Video(path, playback.sequence.task.control_hz))
        if not window and not settings.headless:
            print("there is no display, so what the window would show goes into a video")
        if hasattr(agent, "model"):
            print(f"{settings.env}: {settings.model} on {provider(agent.model)}, planner {agent.planner.name}")
        viewer = Viewer(playback, Path(), recording=path) if window else None
        try:
            viewer.run() if viewer else run_headless(playback)
        finally:
            playback.close()
            for saved in viewer.saved if viewer else [path]:
                print(f"saved {saved}")
    said = [f"success {playback.history.rate} of {playback.history.rate.n}"]
    if plans := playback.history.plans_per_second:
        said.append(f"{plans:.3g} plans/s")
    if viewer:
        said.append(f"{viewer.frames_per_second:.0f} frames/s")
    print(", ".join(said))


def main() -> int:
    play(parse(Play, __doc__))
    return 0


if __name__ == "__main__":
    run(main)
