"""Behind the window: one thread plays the sequence at its pace, another draws what comes of it.

The window's own thread only handles events and shows the newest frame, so that it never waits for a plan or a picture.
"""

import contextlib
import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from agent.episodes.agents import Agent
from agent.episodes.episode import Step
from agent.episodes.goals import parse_goal
from agent.episodes.sequence import EpisodeSequence, SequenceSettings, StoppableModel, Stopped
from agent.factory import make_task
from agent.viewer.canvas import Canvas
from agent.viewer.frame import FrameRenderer, View
from agent.viewer.hud_state import HudState
from agent.viewer.latent_images import make_latent_images
from agent.viewer.video import Video
from envs import Task

HOLD_S = 1.0
"""How long the end of an episode is shown."""
SLOWEST, FASTEST = 1 / 8, 8.0


class Pace:
    """When the next step may be taken: in time, one at a time, or not at all while paused."""

    def __init__(self, hz: float):
        self.paused = False
        self.speed = 1.0
        self.stopped = False
        self._period_s = 1 / hz
        self._steps = 0
        self._change = threading.Condition()
        self._due = self._now()

    def wait(self, seconds: float = 0.0) -> None:
        """Block until the next step is due, and `seconds` longer."""
        with self._change:
            now = self._now()
            self._due = max(self._due + self._period_s / self.speed, now - self._period_s)
            until = self._due + seconds / self.speed
            while not self.stopped and not self._steps and (self.paused or (now := self._now()) < until):
                self._sleep(None if self.paused else until - now)
            self._steps = max(0, self._steps - 1)

    def pause(self, paused: bool) -> None:
        self._set(paused=paused)

    def step(self) -> None:
        """Let one step through at once."""
        self._set(_steps=self._steps + 1)

    def change_speed(self, factor: float) -> None:
        self._set(speed=min(max(self.speed * factor, SLOWEST), FASTEST))

    def stop(self) -> None:
        """Let everything through: the sequence is over."""
        self._set(stopped=True)

    def _now(self) -> float:
        return time.perf_counter()

    def _sleep(self, seconds: float | None) -> None:
        """Until something changes, or for `seconds`."""
        self._change.wait(seconds)

    def _set(self, **values: object) -> None:
        with self._change:
            for name, value in values.items():
                setattr(self, name, value)
            self._change.notify_all()


class Playback:
    """Plays a sequence and draws it, each in a thread of its own; `canvas` is the newest frame."""

    def __init__(self, sequence: EpisodeSequence, renderer: FrameRenderer):
        self.sequence = sequence
        self.renderer = renderer
        self.hud = HudState(len(sequence.task.action_names))
        self.pace = Pace(sequence.task.control_hz)
        self.view = View()
        self.canvas: Canvas | None = None
        self.error: BaseException | None = None
        self.over = False
        self.count = 0
        """Records so far."""
        self._records: deque[Step] = deque()
        self._stale = False
        self._closing = False
        self._change = threading.Condition()
        self._video: Video | None = None
        self._video_lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._guarded, args=(self._play, sequence.task), name="play", daemon=True),
            threading.Thread(target=self._guarded, args=(self._draw, renderer.task), name="draw", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def look(self, view: View) -> None:
        """Draw with this view from now on."""
        with self._change:
            self.view, self._stale = view, True
            self._change.notify_all()

    def show(self, records: Sequence[Step], view: View) -> None:
        """Take note of records, draw the last of them, and add a frame to the video for each."""
        for record in records:
            self.hud.add(record)
            self.renderer.latent_images.see(record)
        self.count += len(records)
        self.canvas = self.renderer.draw(self.hud, view)
        with self._video_lock:
            if self._video and records:
                pixels = self.canvas.pixels
                if view.scale != 1:  # all frames of a video have one size
                    pixels = self.renderer.draw(self.hud, dataclasses.replace(view, scale=1.0)).pixels
                for _ in records:
                    self._video.add(pixels)

    def record(self, video: Video | None) -> None:
        """Add a frame for every record to this video from now on; the one before is finished."""
        with self._video_lock:
            before, self._video = self._video, video
        if before:
            before.close()

    def close(self) -> None:
        """Stop both threads and finish the video."""
        self._closing = True
        self.pace.stop()
        model = self.sequence.agent.model
        if isinstance(model, StoppableModel):
            model.stop()
        with self._change:
            self.over = True
            self._change.notify_all()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self.renderer.latent_images.close()
        self.record(None)

    def _guarded(self, work: Callable[[], None], task: Task) -> None:
        """Run a thread's work; what goes wrong ends the sequence and is kept for the window's thread to raise.

        A thread closes the task that it draws with: what OpenGL made in one thread does not belong in another.
        """
        try:
            work()
        except Stopped:
            pass
        except BaseException as error:
            if not self._closing:  # a plan that was cut short fails in its own way
                self.error = self.error or error
        finally:
            task.close()
            with self._change:
                self.over = True
                self._change.notify_all()
            self.pace.stop()

    def _play(self) -> None:
        in_time = self.sequence.settings.episode.realtime
        with contextlib.closing(iter(self.sequence)) as records:
            for record in records:
                with self._change:
                    # In lockstep the world waits for the drawing too, so that a video misses nothing.
                    self._change.wait_for(lambda: self.over or in_time or not self._records)
                    self._records.append(record)
                    self._change.notify_all()
                last = record.step == record.limit
                if not in_time or last or self.pace.paused:
                    self.pace.wait(HOLD_S if last else 0.0)
                if self.over:
                    return
            with self._change:
                self._change.wait_for(lambda: self.over or not self._records)

    def _draw(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self.over or self._records or (self._stale and self.canvas))
                if self.over and not self._records:
                    return
                records, view, self._stale = list(self._records), self.view, False
                self._records.clear()
                self._change.notify_all()
            self.show(records, view)


def make_playback(agent: Agent, settings: SequenceSettings, goal: str = "pair") -> Playback:
    """The playback of an agent, with a task drawn as its model wants to see it; `goal` is what `--goal` takes."""
    name = settings.episode.env
    task = make_task(name, agent.model)
    goals = parse_goal(goal, task)
    task.close()  # it may be drawn in another thread
    renderer = FrameRenderer(name, agent, make_latent_images(agent.model), goals)
    return Playback(EpisodeSequence(task, agent, goals, settings), renderer)
