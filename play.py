"""Watch an agent plan with a world model.

    python play.py --env pusht --model qqworld.onnx

Opens a window (H shows its keys); without a display it writes a video and says where.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.episodes.sequence import SequenceSettings
from agent.episodes.settings import EpisodeSettings, at_least
from agent.factory import make_agent
from agent.viewer.app import Viewer
from agent.viewer.headless import run_headless
from agent.viewer.threads import make_playback
from agent.viewer.video import Video
from agent.viewer.window import Window, has_display
from envs.errors import BadInput, parse_command_line, run

PUSHT = EpisodeSettings("pusht")
VIDEO_EPISODES = 3


@dataclass(frozen=True)
class Play:
    """Watch an agent plan with a world model."""

    episode: EpisodeSettings = PUSHT
    model: str = "qqworld.onnx"
    """World model: a file, a name under pretrained/TASK/, package.module:Class, or simulator (the true task)."""
    agent: Literal["model", "random", "zero", "expert"] = "model"
    """Who acts: the model's planner, or a rule that knows nothing of the goal."""
    episodes: int | None = None
    """Episodes to play (default: a window goes on until it is closed, a video has 3)."""
    seed: int = 0
    """Seed of the start and goal pairs and of everything random."""
    goal: str = "pair"
    """Goal: pair, random, a picture (IMAGE.png), or the numbers of a state with commas (120,60)."""
    headless: bool = False
    """Open no window, even with a display."""
    video: Path | None = None
    """Write a video here (default without a window: qqworld-TASK.mp4)."""
    log: Path | None = None
    """Append one line of JSON for every episode to this file."""

    def check(self) -> None:
        """Refuse what makes no sense."""
        self.episode.check()
        at_least(1, episodes=self.episodes)
        at_least(0, seed=self.seed)
        if self.log and not self.log.parent.is_dir():
            raise BadInput(f"the log {self.log} cannot be written: the folder {self.log.parent} does not exist")


def play(settings: Play) -> None:
    """Play in a window or into a video, and say what came of it."""
    settings.check()
    env = settings.episode.env
    on_screen = not settings.headless and has_display()
    video = settings.video or (None if on_screen else Path(f"qqworld-{env}.mp4"))
    episodes = settings.episodes or (None if on_screen else VIDEO_EPISODES)
    agent = make_agent(settings.episode, settings.model, None if settings.agent == "model" else settings.agent)
    sequence = SequenceSettings(settings.episode, settings.seed, episodes, settings.log)
    with contextlib.closing(make_playback(agent, sequence, settings.goal)) as playback:
        if video:
            playback.record(Video(video, playback.sequence.task.control_hz))
        if not on_screen and not settings.headless:
            print("there is no display, so what the window would show goes into a video")
        if agent.model and agent.planner:
            print(
                f"{env}: {agent.model.path or settings.model} on {agent.model.provider}, planner {agent.planner.name}"
            )
        window = Window(Viewer(playback, Path(), recording=video)) if on_screen else None
        try:
            window.run() if window else run_headless(playback)
        finally:
            playback.close()
            for saved in window.viewer.saved if window else [video]:
                print(f"saved {saved}")
    said = [f"success {playback.hud.rate} of {playback.hud.rate.n}"]
    if plans := playback.hud.plans_per_second:
        said.append(f"{plans:.3g} plans/s")
    if window:
        said.append(f"{window.frames_per_second:.0f} frames/s")
    print(", ".join(said))


def main() -> int:
    play(parse_command_line(Play, __doc__))
    return 0


def command() -> None:
    """The installed program."""
    run(main)


if __name__ == "__main__":
    command()
