"""Watch an agent plan with a world model.

    python play.py --env pusht --model qqworld.onnx

Opens a window (H shows its keys); without a display it writes a video and says where.
"""

import contextlib
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agent.episodes.agents import Agent
from agent.episodes.replay import RecordedAgent, read_episodes
from agent.episodes.sequence import SequenceSettings
from agent.episodes.settings import EpisodeSettings, at_least
from agent.factory import make_agent, make_replay_agent
from agent.viewer.app import Viewer
from agent.viewer.headless import run_headless
from agent.viewer.hud_state import HudState
from agent.viewer.threads import make_playback
from agent.viewer.video import Video
from agent.viewer.window import Window, has_display
from envs.errors import BadInput, parse_command_line, run

PUSHT = EpisodeSettings("pusht")
VIDEO_EPISODES = 3
RECORDINGS = Path("recordings")
"""Where V and S write."""


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
    pair: int = 0
    """The first pair to play."""
    replay: Path | None = None
    """Play episodes of this log again (episodes.jsonl of an evaluation, or a file of --log)."""
    pick: str = "all"
    """Which of them: all, failed, reached, the number of a line, or a seed and a pair (100/7)."""
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
        at_least(0, seed=self.seed, pair=self.pair)
        if self.log and not self.log.parent.is_dir():
            raise BadInput(f"the log {self.log} cannot be written: the folder {self.log.parent} does not exist")


def play(settings: Play) -> None:
    """Play in a window or into a video, and say what came of it."""
    settings.check()
    warnings.formatwarning = lambda message, *_, **__: f"\nwarning: {message}\n"
    how, sequence, agent = _replayed(settings) if settings.replay else _paired(settings)
    on_screen = not settings.headless and has_display()
    video = settings.video or (None if on_screen else Path(f"qqworld-{how.env}.mp4"))
    if sequence.episodes is None and not on_screen:
        sequence = replace(sequence, episodes=min(VIDEO_EPISODES, len(sequence.replay) or VIDEO_EPISODES))
    with contextlib.closing(make_playback(agent, sequence, settings.goal)) as playback:
        if video:
            playback.record(Video(video, playback.sequence.task.control_hz))
        if not on_screen and not settings.headless:
            print("there is no display, so what the window would show goes into a video")
        if agent.model and agent.planner:
            model = agent.model.path or settings.model
            print(f"{how.env}: {model} on {agent.model.provider}, planner {agent.planner.name}")
        window = Window(Viewer(playback, RECORDINGS, recording=video)) if on_screen else None
        try:
            window.run() if window else run_headless(playback)
        finally:
            playback.close()
            for saved in window.viewer.saved if window else [video]:
                print(f"saved the {'screenshot' if saved and saved.suffix == '.png' else 'video'} {saved}")
    print(", ".join(_said(playback.hud, window)))


def _paired(settings: Play) -> tuple[EpisodeSettings, SequenceSettings, Agent]:
    """Episodes from pairs, and who plays them."""
    agent = make_agent(settings.episode, settings.model, None if settings.agent == "model" else settings.agent)
    sequence = SequenceSettings(settings.episode, settings.seed, settings.episodes, settings.log, settings.pair)
    return settings.episode, sequence, agent


def _replayed(settings: Play) -> tuple[EpisodeSettings, SequenceSettings, Agent]:
    """Episodes of a log, with its task and its planner unless another one is asked for."""
    assert settings.replay is not None
    subject = settings.model if settings.agent == "model" else settings.agent
    logged = read_episodes(settings.replay, subject, settings.pick)
    how = replace(settings.episode, env=logged[0].task, steps=len(logged[0].actions), realtime=False)
    if how.planner is None and not how.plan:
        name, plan = logged[0].planner_words
        how = replace(how, planner=name, plan=plan)
    agent = make_replay_agent(how, settings.model) if logged[0].planner else RecordedAgent()
    if agent.model and agent.model.sha256 != logged[0].model_sha256:
        print(f"the log was made with another model than {settings.model}: actions are the log's, plans this model's")
    sequence = SequenceSettings(how, settings.seed, settings.episodes, settings.log, replay=tuple(logged))
    return how, sequence, agent


def _said(hud: HudState, window: Window | None) -> list[str]:
    """What came of it, in a few words; success by planner where there were several."""
    several = len(hud.rates) > 1
    said = [
        f"success {planner.name + ' ' if several and planner else ''}{rate} of {rate.n}" for planner, rate in hud.rates
    ]
    if not said:
        said.append("no episode was finished")
    if plans := hud.plans_per_second:
        said.append(f"{plans:.3g} plans/s")
    if hud.record and hud.record.misses:
        said.append(f"{hud.record.misses} plans of the last episode missed their deadline")
    if window:
        said.append(f"{window.frames_per_second:.0f} frames/s")
    return said


def main() -> int:
    play(parse_command_line(Play, __doc__))
    return 0


def command() -> None:
    """The installed program."""
    run(main)


if __name__ == "__main__":
    command()
