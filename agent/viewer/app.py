"""What a person does to a playback: keys and mouse in, whatever shows the frames."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np

from agent.viewer import overlay
from agent.viewer.canvas import Box
from agent.viewer.controls import KEYS
from agent.viewer.frame import GOAL_PANE, NOW, PANE, TIMELINE, View
from agent.viewer.planner_choice import PlannerChoice
from agent.viewer.threads import Playback
from agent.viewer.video import Recordings
from envs import BadInput

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
        self.view = View(recording=recording is not None)
        self._recordings = Recordings(folder, self.task.name)
        self.saved = self._recordings.saved
        self._recording = recording
        if recording:
            self.saved.append(recording)
        self.closed = False
        self._hint_until = 0.0
        self._pushing: np.ndarray | None = None
        self._placing: tuple[int, np.ndarray, np.ndarray] | None = None
        self._scrubbing = False
        self._choice = PlannerChoice(self.sequence.agent)

    def update(self, frames_per_second: int, scale: float = 1.0) -> None:
        """Bring the view up to date before a frame is shown, drawn with `scale` pixels to a unit."""
        before = self.view.frames_per_second
        steady = before is not None and abs(frames_per_second - before) <= 1
        self._change(
            hint=self.view.hint if time.perf_counter() < self._hint_until else "",
            paused=self.pace.paused,
            speed=self.pace.speed,
            scale=scale,
            frames_per_second=before if steady else frames_per_second,
        )

    # ---- keys ----------------------------------------------------------------------------------------------------

    def key(self, name: str) -> None:
        """Do what the key is for, or say why not; a key that is not in the table does nothing."""
        if name in KEYS:
            try:
                getattr(self, KEYS[name])()
            except BadInput as error:
                self.hint(str(error))

    def pause(self) -> None:
        self._change(back=None)
        self.pace.pause(not self.pace.paused)

    def step(self) -> None:
        """Take a step, or look at the next one of those that were taken."""
        self.pace.pause(True)
        if self.view.back is None:
            self.pace.step()
        else:
            self._look_at(self.view.back + 1)

    def step_back(self) -> None:
        """Look at the step before."""
        newest = len(self.playback.hud.history) - 1
        self._look_at((newest if self.view.back is None else self.view.back) - 1)

    def restart(self) -> None:
        self.sequence.restart()
        self._go_on()

    def next_pair(self) -> None:
        self.sequence.next_pair()
        self._go_on()

    def new_goal(self) -> None:
        self.sequence.new_goal()
        self._go_on()
        self.hint("a new goal")

    def toggle_planner(self) -> None:
        if not self._choice:
            self._hint_no_planner()
        else:
            self._change(planning=not self.view.planning)
            self.sequence.set_planning(self.view.planning)

    def switch_planner(self) -> None:
        """Plan with the next of the planners that the model allows, from the next plan on."""
        if not self._choice:
            self._hint_no_planner()
        else:
            self._choice.next_planner()
            self._use_planner()
            self.hint(f"planner {self._choice.planner.name} from the next plan on")

    def next_setting(self) -> None:
        self._select(1)

    def previous_setting(self) -> None:
        self._select(-1)

    def raise_setting(self) -> None:
        self._change_setting(up=True)

    def lower_setting(self) -> None:
        self._change_setting(up=False)

    def toggle_candidates(self) -> None:
        self._change(candidates=not self.view.candidates)
        if not self._choice:
            self.hint(f"there are no candidates: the agent is {self.sequence.agent.name}")

    def toggle_ghost(self) -> None:
        self._change(ghost=not self.view.ghost)

    def toggle_imagined(self) -> None:
        self._change(imagined=not self.view.imagined)

    def slower(self) -> None:
        self._change_speed(0.5)

    def faster(self) -> None:
        self._change_speed(2.0)

    def record(self) -> None:
        """Begin a video, or finish the one that runs."""
        if self._recording is not None:
            self.playback.record(None)
            self.hint(f"saved the video {self._recording}")
            self._recording = None
        else:
            video = self._recordings.video(self.task.control_hz)
            self.playback.record(video)
            self._recording = video.path
            self.hint(f"recording the video {video.path}")
        self._change(recording=self._recording is not None)

    def screenshot(self) -> None:
        if self.playback.canvas is not None:
            self.hint(f"saved the screenshot {self._recordings.screenshot(self.playback.canvas.pixels)}")

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
        if TIMELINE.contains(*point):
            self._scrubbing = True
            self.drag(point)
        elif self.view.back is not None:
            self.hint("this is the past: space goes on, the right arrow goes forward")
        elif NOW.contains(*point):
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
        """Show what a release here would do, or the step of the episode that the pointer is at."""
        record = self.playback.hud.record
        if self._scrubbing and record is not None:
            self._look_at(round((point[0] - TIMELINE.x) / TIMELINE.w * record.limit))
        elif self._pushing is not None:
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
        self._scrubbing = False
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

    def _go_on(self) -> None:
        """Show the newest step, and take one."""
        self._change(back=None)
        self.pace.step()

    def _look_at(self, index: int) -> None:
        """Stop at a step of this episode that was taken."""
        newest = len(self.playback.hud.history) - 1
        self.pace.pause(True)
        self._change(back=None if index >= newest else max(index, 0))

    def _use_planner(self) -> None:
        self.sequence.set_planner(self._choice.planner, self._choice.plan_ms)
        if self.view.settings:
            self._change(settings=self._choice.shown())

    def _select(self, way: int) -> None:
        """Choose the next or the last of the settings; the first time, show them."""
        if not self._choice:
            self._hint_no_planner()
        else:
            self._choice.select(way if self.view.settings else 0)
            self._change(settings=self._choice.shown(), selected=self._choice.selected, hint="")

    def _change_setting(self, up: bool) -> None:
        if not self.view.settings:
            self._select(0)
            return
        try:
            self._choice.change(up)
        except ValueError as error:
            self.hint(str(error))
        else:
            self._use_planner()

    def _hint_no_planner(self) -> None:
        self.hint(f"there is no planner: the agent is {self.sequence.agent.name}")

    def _aim(self, goal: np.ndarray) -> None:
        self.sequence.aim(goal)
        self._go_on()
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


def _share(point: np.ndarray, box: Box) -> np.ndarray:
    """A point of the frame as shares of a pane."""
    return (point - np.array(box[:2])) / PANE
