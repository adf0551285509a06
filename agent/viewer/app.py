"""The window: keys and mouse in, the newest frame out."""

import dataclasses
import itertools
import time
from pathlib import Path
from typing import Any

import imageio.v3 as imageio
import numpy as np

from agent import planning as planners
from agent.planning.base import Planner
from agent.viewer import overlay as projection
from agent.viewer.canvas import Box, pygame
from agent.viewer.frame import GOAL_PANE, NOW, PANE, View
from agent.viewer.threads import Playback
from agent.viewer.video import Video
from agent.viewer.window import frame_point, open_window, show

FPS = 30
HINT_S = 2.5
SMALLEST_DRAG = 4.0  # pixels; less is a hand that trembles
WHEEL_RAD = np.pi / 18


class Viewer:
    """A playback in a window: `tick` handles what the person did and shows the newest frame, `run` repeats it."""

    def __init__(self, playback: Playback, folder: Path, recording: Path | None = None):
        self.playback, self.sequence, self.pace = playback, playback.sequence, playback.pace
        self.task, self.folder = playback.renderer.task, folder
        self.view = View(recording=recording is not None)
        self.saved: list[Path] = [recording] if recording else []
        self.closed = False
        self.frames_per_second = 0.0
        self._hint_until = 0.0
        open_window(f"QQWorld {self.task.name}")
        self._clock = pygame.time.Clock()
        self._pushing: np.ndarray | None = None
        self._placing: tuple[int, np.ndarray, np.ndarray] | None = None
        self._planners = available(self.sequence.agent)

    def run(self) -> None:
        """Show the sequence until it is over or the window is closed; raises what went wrong behind it."""
        started, ticks = time.perf_counter(), 0
        self.playback.start()
        try:
            while not self.closed and not self.playback.over:
                self.tick()
                self._clock.tick(FPS)
                ticks += 1
        finally:
            self.frames_per_second = ticks / (time.perf_counter() - started)
            self.playback.close()
            pygame.display.quit()
        if self.playback.error:
            raise self.playback.error

    def tick(self) -> None:
        """One frame of the window."""
        for event in pygame.event.get():
            self.handle(event)
        hint = self.view.hint if time.perf_counter() < self._hint_until else ""
        fps = round(self._clock.get_fps())
        steady = self.view.frames_per_second is not None and abs(fps - self.view.frames_per_second) <= 1
        self._change(
            hint=hint,
            paused=self.pace.paused,
            speed=self.pace.speed,
            frames_per_second=self.view.frames_per_second if steady else fps,
        )
        if self.playback.canvas is not None:
            show(self.playback.canvas)

    def handle(self, event: Any) -> None:
        """One key, click or drag."""
        if event.type == pygame.QUIT:
            self.closed = True
        elif event.type == pygame.KEYDOWN and event.key in KEYS:
            KEYS[event.key](self)
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 1:
            self._press(frame_point(event.pos))
        elif event.type == pygame.MOUSEMOTION:
            self._drag(frame_point(event.pos))
        elif event.type == pygame.MOUSEBUTTONUP and event.button == 1:
            self._release(frame_point(event.pos))
        elif event.type == pygame.MOUSEWHEEL:
            self._turn(frame_point(pygame.mouse.get_pos()), event.y)

    # ---- keys ----------------------------------------------------------------------------------------------------

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
        if not hasattr(self.sequence.agent, "planning"):
            self.hint(f"there is no planner: the agent is {self.sequence.agent.name}")
            return
        self._change(planning=not self.view.planning)
        self.sequence.set_planning(self.view.planning)

    def switch_planner(self) -> None:
        """Plan with the next of the planners that the model allows, from the next plan on."""
        if not self._planners:
            self.hint(f"there is no planner: the agent is {self.sequence.agent.name}")
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
        """Begin a film, or finish the one that runs."""
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

    def _press(self, point: np.ndarray) -> None:
        record = self.playback.history.record
        if record is None:
            return
        if NOW.contains(*point):
            if projection.displacement(self.task, record.state, np.zeros(2)) is None:
                self.hint("nothing can be pushed by hand in this task")
            else:
                self._pushing = point
        elif GOAL_PANE.contains(*point):
            held = projection.grab(self.task, record.goal, _share(point, GOAL_PANE))
            if held is None:
                self.hint("the goal of this task cannot be placed by hand: G draws a new one")
            else:
                self._placing = (*held, record.goal.copy())
                self._drag(point)

    def _drag(self, point: np.ndarray) -> None:
        if self._pushing is not None:
            x, y, to_x, to_y = (float(number) for number in (*self._pushing, *point))
            self._change(arrow=(x, y, to_x, to_y))
        elif self._placing is not None:
            thing, offset, goal = self._placing
            placed = projection.placed(self.task, goal, thing, _share(point, GOAL_PANE) + offset)
            self._change(goal=tuple(placed.tolist()))

    def _release(self, point: np.ndarray) -> None:
        record = self.playback.history.record
        if self._pushing is not None and record is not None:
            drag = point - self._pushing
            push = projection.displacement(self.task, record.state, drag / PANE)
            if push is not None and np.linalg.norm(drag) >= SMALLEST_DRAG:
                self.sequence.push(push)
                self.pace.step()
                self.hint("pushed")
        elif self.view.goal is not None:
            self._aim(np.array(self.view.goal))
        self._pushing = self._placing = None
        self._change(arrow=None, goal=None)

    def _turn(self, point: np.ndarray, notches: int) -> None:
        record = self.playback.history.record
        if record is not None and GOAL_PANE.contains(*point):
            goal = projection.turned(self.task, record.goal, notches * WHEEL_RAD)
            if goal is not None:
                self._aim(goal)

    # ---- helpers -------------------------------------------------------------------------------------------------

    def hint(self, words: str) -> None:
        """Tell the person something for a while."""
        self._hint_until = time.perf_counter() + HINT_S
        self._change(hint=words)

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
        if self.sequence.settings.realtime:
            self.hint("in real time the speed is the task's own")
        else:
            self.pace.change_speed(factor)

    def _unused(self, suffix: str) -> Path:
        """A file name that is not taken."""
        names = (self.folder / f"qqworld-{self.task.name}-{number}.{suffix}" for number in itertools.count(1))
        return next(path for path in names if not path.exists() and path not in self.saved)


KEYS = {
    pygame.K_SPACE: Viewer.pause,
    pygame.K_RIGHT: Viewer.step,
    pygame.K_r: Viewer.restart,
    pygame.K_n: Viewer.next_pair,
    pygame.K_g: Viewer.new_goal,
    pygame.K_p: Viewer.toggle_planner,
    pygame.K_m: Viewer.switch_planner,
    pygame.K_c: Viewer.toggle_candidates,
    pygame.K_TAB: Viewer.toggle_imagined,
    pygame.K_MINUS: Viewer.slower,
    pygame.K_EQUALS: Viewer.faster,
    pygame.K_v: Viewer.record,
    pygame.K_s: Viewer.screenshot,
    pygame.K_h: Viewer.toggle_help,
    pygame.K_q: Viewer.quit,
    pygame.K_ESCAPE: Viewer.quit,
}


def available(agent: Any) -> list[Planner]:
    """The planners that a person can switch between: the agent's own, then the others that its model allows."""
    if not hasattr(agent, "planner"):
        return []
    names = ("cem", "guided", "propose") if getattr(agent.model, "proposes", False) else ("cem",)
    others = [planners.make_for(agent.model, name) for name in names if name != agent.planner.name]
    return [agent.planner, *others]


def _share(point: np.ndarray, box: Box) -> np.ndarray:
    """A point of the frame as shares of a pane."""
    return (point - np.array(box[:2])) / PANE
