"""What a person does to a playback: keys and mouse in, whatever shows the frames."""

import dataclasses
import itertools
import time
from pathlib import Path
from typing import Any

import imageio.v3 as imageio
import numpy as np

from agent import planning as planners
from agent.episodes.agents import Agent
from agent.planning.base import Planner
from agent.viewer import overlay
from agent.viewer.canvas import Box
from agent.viewer.controls import KEYS
from agent.viewer.frame import GOAL_PANE, NOW, PANE, View
from agent.viewer.threads import Playback
from agent.viewer.video import Video

HINT_S = 2.5
SMALLEST_DRAG = 4.0  # pixels; less is an unsteady hand
WHEEL_RAD = np.pi / 18


class Viewer:
    """Answers keys and mouse; `controls` lists them with the methods that they call.

    It knows nothing of what shows the frames: keys come by name and points `(2,)` in pixels of the frame. Whoever shows
    the frames calls `update` for each of them.
    """

    def __init__(self, playback: Playback, folder: Path, recording: Path | None = None):
        self.playback = playback
        self.sequence = playback.sequence
        self.pace = playback.pace
        self.task = playback.renderer.task
        self.folder = folder
        self.view = View(recording=recording is not None)
        self.saved: list[Path] = [recording] if recording else []
        self.closed = False
        self._hint_until = 0.0
        self._pushing: np.ndarray | None = None
        self._placing: tuple[int, np.ndarray, np.ndarray] | None = None
        self._planners = available_planners(self.sequence.agent)

    def update(self, frames_per_second: int) -> None:
        """Bring the view up to date before a frame is shown."""
        before = self.view.frames_per_second
        steady = before is not None and abs(frames_per_second - before) <= 1
        self._change(
            hint=self.view.hint if time.perf_counter() < self._hint_until else "",
            paused=self.pace.paused,
            speed=self.pace.speed,
            frames_per_second=before if steady else frames_per_second,
        )

    # ---- keys ----------------------------------------------------------------------------------------------------

    def key(self, name: str) -> None:
        """Do what the key is for; a key that is not in the table does nothing."""
        if name in KEYS:
            getattr(self, KEYS[name])()

    def pause(self) -> None:
        self.pace.pause(not self.pace.paused)

    def step(self) -> None:
        self.pace.pause(True)
        self.pace.step()

    def restart(self) -> None:
        self.sequence.restart()
        self.pace.step()

    def next_pair(self) -> None:
        self.sequence.next_pair()
        self.pace.step()

    def new_goal(self) -> None:
        self.sequence.new_goal()
        self.pace.step()
        self.hint("a new goal")

    def toggle_planner(self) -> None:
        if not self._planners:
            self._hint_no_planner()
        else:
            self._change(planning=not self.view.planning)
            self.sequence.set_planning(self.view.planning)

    def switch_planner(self) -> None:
        """Plan with the next of the planners that the model allows, from the next plan on."""
        if not self._planners:
            self._hint_no_planner()
        elif len(self._planners) == 1:
            self.hint(f"{self._planners[0].name} is the only planner: this model has no proposals")
        else:
            self._planners.append(self._planners.pop(0))
            self.sequence.set_planner(self._planners[0])
            self.hint(f"planner {self._planners[0].name} from the next plan on")

    def toggle_candidates(self) -> None:
        self._change(candidates=not self.view.candidates)

    def toggle_imagined(self) -> None:
        self._change(imagined=not self.view.imagined)

    def slower(self) -> None:
        self._change_speed(0.5)

    def faster(self) -> None:
        self._change_speed(2.0)

    def record(self) -> None:
        """Begin a video, or finish the one that runs."""
        if self.view.recording:
            self.playback.record(None)
            self.hint(f"saved {self.saved[-1]}")
        else:
            self.saved.append(self._unused("mp4"))
            self.playback.record(Video(self.saved[-1], self.task.control_hz))
            self.hint(f"recording to {self.saved[-1]}")
        self._change(recording=not self.view.recording)

    def screenshot(self) -> None:
        if self.playback.canvas is not None:
            self.saved.append(self._unused("png"))
            imageio.imwrite(self.saved[-1], self.playback.canvas.pixels)
            self.hint(f"saved {self.saved[-1]}")

    def toggle_help(self) -> None:
        self._change(help=not self.view.help)

    def quit(self) -> None:
        self.closed = True

    # ---- mouse ---------------------------------------------------------------------------------------------------

    def press(self, point: np.ndarray) -> None:
        """Take hold of the goal object, or of the goal."""
        record = self.playback.hud.record
        if record is None:
            return
        if NOW.contains(*point):
            if overlay.displacement(self.task, record.state, np.zeros(2)) is None:
                self.hint("nothing can be pushed by hand in this task")
            else:
                self._pushing = point
        elif GOAL_PANE.contains(*point):
            held = overlay.grab(self.task, record.goal, _share(point, GOAL_PANE))
            if held is None:
                self.hint("the goal of this task cannot be placed by hand: G draws a new one")
            else:
                self._placing = (*held, record.goal.copy())
                self.drag(point)

    def drag(self, point: np.ndarray) -> None:
        """Show what a release here would do."""
        if self._pushing is not None:
            x, y, to_x, to_y = (float(number) for number in (*self._pushing, *point))
            self._change(arrow=(x, y, to_x, to_y))
        elif self._placing is not None:
            index, offset, goal = self._placing
            placed = overlay.placed(self.task, goal, index, _share(point, GOAL_PANE) + offset)
            self._change(goal=tuple(placed.tolist()))

    def release(self, point: np.ndarray) -> None:
        """Push, or place the goal."""
        record = self.playback.hud.record
        if self._pushing is not None and record is not None:
            drag = point - self._pushing
            push = overlay.displacement(self.task, record.state, drag / PANE)
            if push is not None and np.linalg.norm(drag) >= SMALLEST_DRAG:
                self.sequence.push(push)
                self.pace.step()
                self.hint("pushed")
        elif self.view.goal is not None:
            self._aim(np.array(self.view.goal))
        self._pushing = self._placing = None
        self._change(arrow=None, goal=None)

    def wheel(self, point: np.ndarray, notches: int) -> None:
        """Turn the goal under the pointer."""
        record = self.playback.hud.record
        if record is not None and GOAL_PANE.contains(*point):
            goal = overlay.turned(self.task, record.goal, notches * WHEEL_RAD)
            if goal is not None:
                self._aim(goal)

    # ---- helpers -------------------------------------------------------------------------------------------------

    def hint(self, words: str) -> None:
        """Tell the person something for a while."""
        self._hint_until = time.perf_counter() + HINT_S
        self._change(hint=words)

    def _hint_no_planner(self) -> None:
        self.hint(f"there is no planner: the agent is {self.sequence.agent.name}")

    def _aim(self, goal: np.ndarray) -> None:
        self.sequence.aim(goal)
        self.pace.step()
        self.hint("the goal is placed")

    def _change(self, **values: Any) -> None:
        view = dataclasses.replace(self.view, **values)
        if view != self.view:
            self.view = view
        if self.playback.view is not self.view:
            self.playback.look(self.view)

    def _change_speed(self, factor: float) -> None:
        if self.sequence.settings.episode.realtime:
            self.hint("in real time the speed is the task's own")
        else:
            self.pace.change_speed(factor)

    def _unused(self, suffix: str) -> Path:
        """A file name that is not taken."""
        names = (self.folder / f"qqworld-{self.task.name}-{number}.{suffix}" for number in itertools.count(1))
        return next(path for path in names if not path.exists() and path not in self.saved)


def available_planners(agent: Agent) -> list[Planner]:
    """The planners that a person can switch between: the agent's own, then the others that its model allows."""
    if agent.model is None or agent.planner is None:
        return []
    names = ("cem", "guided", "propose") if agent.model.proposes else ("cem",)
    others = [planners.make_for(agent.model, name) for name in names if name != agent.planner.name]
    return [agent.planner, *others]


def _share(point: np.ndarray, box: Box) -> np.ndarray:
    """A point of the frame as shares of a pane."""
    return (point - np.array(box[:2])) / PANE
