"""One frame of the window, the video and the screenshots: a function of what has happened and of the view."""

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

import envs
from agent.episodes.agents import Agent
from agent.episodes.episode import Step
from agent.episodes.goals import Goals
from agent.viewer import qq_plot
from agent.viewer.canvas import (
    ALARM,
    BODY,
    EDGE,
    FAINT,
    GOAL,
    IMAGINED,
    INK,
    LARGE,
    MUTED,
    REAL,
    SMALL,
    TITLE,
    Box,
    Canvas,
    Colour,
)
from agent.viewer.controls import FOOTER, HELP, PANELS
from agent.viewer.ghost import Ghost
from agent.viewer.hud_state import HudState
from agent.viewer.latent_images import LatentImages
from agent.viewer.panels.chart import distances
from agent.viewer.panels.facts import facts, rows_of
from agent.viewer.panels.help import help_card
from agent.viewer.panels.imagined import imagined
from agent.viewer.panels.panes import fan, pane
from agent.viewer.qq_plot import QQ
from envs.base import MAX_SIZE, shrink

WIDTH, HEIGHT = 1140, 780
PANE = 356
NOW, GOAL_PANE, IMAGINED_PANE = (Box(20 + column * (PANE + 16), 76, PANE, PANE) for column in range(3))
ROW = (446, 304)
TIMELINE = Box(20, 38, WIDTH - 40, 14)
"""Where a click goes back in the episode."""
CACHE = 64


@dataclass(frozen=True)
class View:
    """What a person has chosen to see; the defaults are those of a video."""

    candidates: bool = True
    imagined: bool = False
    """Show the present as the plan imagined it."""
    paused: bool = False
    recording: bool = False
    planning: bool = True
    speed: float = 1.0
    ghost: bool = True
    """Draw the goal's outline over the present."""
    help: bool = False
    hint: str = ""
    scale: float = 1.0
    """Pixels to a unit of the frame."""
    back: int | None = None
    """Which record of this episode to show; None is the newest."""
    settings: tuple[tuple[str, str], ...] = ()
    """Settings that can be changed, with their values, while a person is at it."""
    selected: int = 0
    """Which of them."""
    frames_per_second: int | None = None
    goal: tuple[float, ...] | None = None
    """A goal state that is being placed."""
    arrow: tuple[float, float, float, float] | None = None
    """A push that is being drawn: from and to, in pixels."""


class FrameRenderer:
    """Draws frames of a task with a task of its own; the same HUD state and view give the same frame."""

    def __init__(self, task: str, agent: Agent, latent_images: LatentImages, goals: Goals):
        self.task = envs.make(task, size=PANE)
        self.agent = agent
        self.latent_images = latent_images
        self._goals = goals
        self._ghost = Ghost(self.task, self.picture)
        self._pictures: OrderedDict[tuple[bytes, int], np.ndarray] = OrderedDict()
        self._stored: tuple[int, QQ] | None = None

    def draw(self, hud: HudState, view: View) -> Canvas:
        """The whole frame."""
        if view.back is not None:
            hud = hud.as_of(min(view.back, len(hud.history) - 1))
        record = hud.record
        assert record is not None
        canvas = Canvas((WIDTH, HEIGHT), view.scale)
        self._header(canvas, record, view)
        self._now(canvas, hud, record, view)
        self._goal(canvas, record, view)
        self._imagined(canvas, hud, record)
        left, middle, right = (Box(pane.x, ROW[0], PANE, ROW[1]) for pane in (NOW, GOAL_PANE, IMAGINED_PANE))
        distances(canvas, left, hud, self.task.unit)
        self._qq(canvas, middle, hud)
        facts(canvas, right, rows_of(hud, record, self.agent, self.task.unit), record.thought.plan, self.task.rule)
        self._footer(canvas, view)
        if view.arrow:
            canvas.lines(np.array(view.arrow).reshape(1, 2, 2), ALARM, 3, 1.0, NOW)
            canvas.dot(*view.arrow[2:], 6, ALARM)
        if view.help:
            help_card(canvas, HELP, PANELS)
        return canvas

    def picture(self, state: np.ndarray, size: int = PANE) -> np.ndarray:
        """A state as the panes show it, uint8 `(size, size, 3)`; the last ones are kept."""
        key = state.tobytes(), size
        if key not in self._pictures:
            self._pictures[key] = self._drawn(state, size)
            if len(self._pictures) > CACHE:
                self._pictures.popitem(last=False)
        self._pictures.move_to_end(key)
        return self._pictures[key]

    def _drawn(self, state: np.ndarray, size: int) -> np.ndarray:
        if size == PANE:
            return self.task.draw(state)
        if size > PANE and self.task.floor_plan is not None:  # other pictures take too long at that size
            return self.task.portrait(state, min(size, MAX_SIZE))
        return shrink(self.picture(state), size)

    # ---- the parts, from the top ---------------------------------------------------------------------------------

    def _header(self, canvas: Canvas, record: Step, view: View) -> None:
        x = 20 + canvas.text(record.task, 20, 12, TITLE, INK) + 18
        x += canvas.text(f"seed {record.seed}   pair {record.pair}", x, 18, BODY, MUTED) + 18
        canvas.text(f"step {record.step} / {record.limit}", x, 18, BODY, INK)
        right: float = WIDTH - 20
        chips: list[tuple[bool, str, Colour]] = [
            (record.success, "REACHED", GOAL),
            (view.back is not None, "THE PAST", ALARM),
            (view.paused, "PAUSED", MUTED),
            (view.recording, "REC", ALARM),
            (not view.planning, "PLANNER OFF", IMAGINED),
            (record.clock is not None, "REAL TIME", REAL),
            (record.agent == "replay", "REPLAY", REAL),
            (view.speed != 1, f"SPEED x{view.speed:g}", MUTED),
        ]
        for shown, words, colour in chips:
            right -= canvas.chip(words, right, 16, colour) if shown else 0
        if view.frames_per_second is not None:
            canvas.text(f"{view.frames_per_second} fps", right, 18, SMALL, FAINT, "right")
        canvas.fill(Box(20, 44, WIDTH - 40, 2), EDGE)
        canvas.fill(Box(20, 44, round((WIDTH - 40) * record.step / record.limit), 2), GOAL if record.success else REAL)

    def _now(self, canvas: Canvas, hud: HudState, record: Step, view: View) -> None:
        plan, planned_at = record.thought.plan, record.thought.planned_at
        begun = 0 if planned_at is None else max(0, record.step - planned_at)
        if view.imagined:
            state, note = self._imagined_now(hud, record, begun)
            colour = IMAGINED
        else:
            state, note = record.state, "the real world"
            colour = GOAL if record.success else REAL
        size = canvas.length(PANE)
        picture = None if state is None else self.picture(state, size)
        pane(canvas, NOW, "now", note, colour, picture)
        if view.ghost:
            width = canvas.text("goal", NOW.right, NOW.y - 19, SMALL, GOAL, "right")
            canvas.lines(
                np.array([[[NOW.right - width - 20, NOW.y - 11], [NOW.right - width - 6, NOW.y - 11]]]), GOAL, 2
            )
            for outline in self._ghost.outlines(record.goal):
                path = outline * PANE + np.array(NOW[:2])
                canvas.area(path, GOAL, 0.25, NOW)
                canvas.lines(path[None], GOAL, 2, 0.9, NOW)
        if plan is not None and view.candidates and not fan(canvas, NOW, self.task, record.state, plan, begun):
            canvas.text("this task does not say where candidates lead", NOW.x + 8, NOW.bottom - 20, SMALL, FAINT)

    def _imagined_now(self, hud: HudState, record: Step, begun: int) -> tuple[np.ndarray | None, str]:
        """The state that looks like what the plan in force expected of now, at the last whole block."""
        thought = record.thought
        if thought.latent is None:
            return None, self.latent_images.note()
        latent, note = thought.latent, "as seen"
        if thought.plan is not None and (block := begun // hud.block(thought.plan)):
            latent, note = thought.plan.latents[min(block, len(thought.plan.latents)) - 1], "as planned"
        shown = self.latent_images.states(latent[None])
        return (None if shown is None else shown.states[0]), f"{note}, {self.latent_images.note()}"

    def _goal(self, canvas: Canvas, record: Step, view: View) -> None:
        size = canvas.length(PANE)
        if view.goal is not None:
            picture, note = self.picture(np.array(view.goal), size), "being placed"
        elif self._goals.picture is not None and _same(record.goal, self._goals.pictured):
            picture, note = self._goals.picture, "your picture, judged by a state that looks like it"
            if record.thought.goal_latent is not None and self.latent_images.is_far(record.thought.goal_latent):
                note = "your picture: it encodes far from every state"
        else:
            picture, note = self.picture(record.goal, size), self.task.note
        pane(canvas, GOAL_PANE, "goal", note, GOAL, picture)

    def _imagined(self, canvas: Canvas, hud: HudState, record: Step) -> None:
        plan, box = record.thought.plan, IMAGINED_PANE
        shown = None if plan is None else self.latent_images.states(plan.latents)
        note = self.latent_images.note()
        if plan is None or shown is None:
            pane(canvas, box, "imagined", "", IMAGINED, None)
            words = "no plan" if plan is None and self.agent.model is not None else note
            canvas.text(words, box.x + box.w / 2, box.y + box.h / 2 - 10, LARGE, FAINT, "centre")
            return

        def picture(state: np.ndarray, size: int) -> np.ndarray:
            return self.picture(state, canvas.length(size))

        imagined(canvas, box, plan, hud.block(plan), record.goal, shown, note, picture)

    def _footer(self, canvas: Canvas, view: View) -> None:
        """A hint, the settings while they are being changed, or the keys that are used most."""
        y = HEIGHT - 24
        if view.hint or not view.settings:
            canvas.text(view.hint or FOOTER, WIDTH / 2, y, SMALL, INK if view.hint else FAINT, "centre")
            return
        x = 20 + canvas.text("settings: [ ] choose, up and down change", 20, y, SMALL, FAINT) + 24
        for number, (name, value) in enumerate(view.settings):
            colour = IMAGINED if number == view.selected else MUTED
            x += canvas.text(f"{name} {value}", x, y, SMALL, colour) + 22

    def _qq(self, canvas: Canvas, box: Box, hud: HudState) -> None:
        model = self.agent.model
        if model is None:
            qq_plot.draw(canvas, box, None, note="no model, no latents")
            return
        of_states = model.sees == "state"
        recent = np.array([latent[: model.cost_size] for latent in hud.latents])
        qq_plot.draw(
            canvas,
            box,
            QQ.of(recent, standardise=of_states) if len(recent) >= qq_plot.FEWEST else None,
            None if of_states else self._stored_qq(model.cost_size),
            note=f"{len(recent)} states, standardised" if of_states else "",
        )

    def _stored_qq(self, size: int) -> QQ | None:
        """The plot of the stored frames, made again only when there are more of them."""
        latents = self.latent_images.latents()
        if latents is None:
            return None
        if self._stored is None or self._stored[0] != len(latents):
            self._stored = len(latents), QQ.of(latents[:, :size])
        return self._stored[1]


def _same(state: np.ndarray, other: np.ndarray | None) -> bool:
    return other is not None and np.array_equal(state, other)
