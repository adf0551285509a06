"""One frame of the window, the video and the screenshots: a function of what has happened and of the view."""

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

import envs
from agent import planning as planners
from agent.episodes.agents import Agent
from agent.episodes.episode import Step
from agent.episodes.goals import Goals
from agent.planning.base import Plan, Planner
from agent.viewer import panels, qq_plot
from agent.viewer.canvas import (
    ALARM,
    BACK,
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
from agent.viewer.controls import FOOTER, HELP
from agent.viewer.hud_state import HudState
from agent.viewer.latent_images import LatentImages
from agent.viewer.qq_plot import QQ
from envs.base import shrink

WIDTH, HEIGHT = 1140, 780
PANE = 356
NOW, GOAL_PANE, IMAGINED_PANE = (Box(20 + column * (PANE + 16), 76, PANE, PANE) for column in range(3))
ROW = (446, 304)
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
    help: bool = False
    hint: str = ""
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
        self._pictures: OrderedDict[tuple[bytes, int], np.ndarray] = OrderedDict()
        self._stored: tuple[int, QQ] | None = None

    def draw(self, hud: HudState, view: View) -> Canvas:
        """The whole frame."""
        record = hud.record
        assert record is not None
        canvas = Canvas((WIDTH, HEIGHT))
        self._header(canvas, record, view)
        self._now(canvas, hud, record, view)
        self._goal(canvas, record, view)
        self._imagined(canvas, hud, record)
        left, middle, right = (Box(pane.x, ROW[0], PANE, ROW[1]) for pane in (NOW, GOAL_PANE, IMAGINED_PANE))
        panels.distances(canvas, left, hud, self.task.unit)
        self._qq(canvas, middle, hud)
        panels.facts(canvas, right, self._rows(hud, record), self.task.rule)
        canvas.text(view.hint or FOOTER, WIDTH / 2, HEIGHT - 24, SMALL, INK if view.hint else FAINT, "centre")
        if view.arrow:
            canvas.lines(np.array(view.arrow).reshape(1, 2, 2), ALARM, 3, 1.0, NOW)
            canvas.dot(*view.arrow[2:], 6, ALARM)
        if view.help:
            panels.help_card(canvas, HELP)
        return canvas

    def picture(self, state: np.ndarray, size: int = PANE) -> np.ndarray:
        """A state as the panes show it, uint8 `(size, size, 3)`; the last ones are kept."""
        key = state.tobytes(), size
        if key not in self._pictures:
            self._pictures[key] = self.task.draw(state) if size == PANE else shrink(self.picture(state), size)
            if len(self._pictures) > CACHE:
                self._pictures.popitem(last=False)
        self._pictures.move_to_end(key)
        return self._pictures[key]

    # ---- the parts, from the top ---------------------------------------------------------------------------------

    def _header(self, canvas: Canvas, record: Step, view: View) -> None:
        x = 20 + canvas.text(record.task, 20, 12, TITLE, INK) + 18
        x += canvas.text(f"seed {record.seed}   pair {record.pair}", x, 18, BODY, MUTED) + 18
        canvas.text(f"step {record.step} / {record.limit}", x, 18, BODY, INK)
        right = WIDTH - 20
        chips: list[tuple[bool, str, Colour]] = [
            (record.success, "REACHED", GOAL),
            (view.paused, "PAUSED", MUTED),
            (view.recording, "REC", ALARM),
            (not view.planning, "PLANNER OFF", IMAGINED),
            (record.clock is not None, "REAL TIME", REAL),
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
        panels.pane(canvas, NOW, "now", note, colour, None if state is None else self.picture(state))
        if plan is not None and view.candidates:
            panels.fan(canvas, NOW, self.task, record.state, plan, begun)

    def _imagined_now(self, hud: HudState, record: Step, begun: int) -> tuple[np.ndarray | None, str]:
        """The state that looks like what the plan in force expected of now, at the last whole block."""
        thought = record.thought
        if thought.latent is None:
            return None, self.latent_images.note()
        latent, note = thought.latent, "as seen"
        if thought.plan is not None and (block := begun // hud.block(thought.plan)):
            latent, note = thought.plan.latents[min(block, len(thought.plan.latents)) - 1], "as planned"
        states = self.latent_images.states(latent[None])
        return (None if states is None else states[0]), f"{note}, {self.latent_images.note()}"

    def _goal(self, canvas: Canvas, record: Step, view: View) -> None:
        if view.goal is not None:
            picture, note = self.picture(np.array(view.goal)), "being placed"
        elif self._goals.picture is not None and _same(record.goal, self._goals.pictured):
            picture, note = self._goals.picture, "your picture, judged by a state that looks like it"
        else:
            picture, note = self.picture(record.goal), ""
        panels.pane(canvas, GOAL_PANE, "goal", note, GOAL, picture)

    def _imagined(self, canvas: Canvas, hud: HudState, record: Step) -> None:
        """The end of the plan large, the way there as a strip of blocks beside it."""
        plan, box = record.thought.plan, IMAGINED_PANE
        states = None if plan is None else self.latent_images.states(plan.latents)
        if plan is None or states is None:
            panels.pane(canvas, box, "imagined", "", IMAGINED, None)
            words = "no plan" if plan is None and self.agent.model is not None else self.latent_images.note()
            canvas.text(words, box.x + box.w / 2, box.y + box.h / 2 - 10, LARGE, FAINT, "centre")
            return
        shown = np.unique(np.linspace(0, len(states) - 1, min(5, len(states))).round().astype(int))
        small = (PANE - 4 * 4) // 5
        large = PANE - small - 8
        panels.pane(canvas, Box(box.x, box.y, large, large), "imagined", self.latent_images.note(), IMAGINED, None)
        canvas.picture(self.picture(states[-1], large), Box(box.x, box.y, large, large), IMAGINED)
        block = hud.block(plan)
        for row, number in enumerate(shown):
            place = Box(box.right - small, box.y + row * (small + 4), small, small)
            canvas.picture(self.picture(states[number], small), place)
            canvas.fill(Box(place.right - 28, place.bottom - 15, 28, 15), BACK)
            canvas.text(f"+{block * (number + 1)}", place.right - 3, place.bottom - 14, SMALL, IMAGINED, "right")
        y = box.y + large + 12
        canvas.text(f"in {block * len(states)} steps", box.x, y, LARGE, INK)
        canvas.text("the end of the plan, and each block on the way", box.x, y + 24, SMALL, MUTED)
        begin, end = hud.predictions[-1].distances[[0, -1]]
        canvas.text(f"expects the distance to go from {begin:.3g} to {end:.3g}", box.x, y + 42, SMALL, MUTED)

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

    def _rows(self, hud: HudState, record: Step) -> list[tuple[str, str, Colour]]:
        model, planner = self.agent.model, self.agent.planner
        distance = f"{record.distance:.3g} {self.task.unit}"
        hit = "not yet" if record.first_hit is None else f"first at step {record.first_hit}"
        rows = [
            ("distance", distance, GOAL if record.success else INK),
            ("reached", hit, INK if record.first_hit is None else GOAL),
            ("success", f"{hud.rate}   of {hud.rate.n}" if hud.results else "no episode yet", INK),
            ("agent", record.agent, INK),
        ]
        if model is not None and planner is not None:
            p50, p95, rate = hud.plan_ms(50), hud.plan_ms(95), hud.plans_per_second
            plans = "-" if p50 is None else f"p50 {p50:.0f} ms   p95 {p95:.0f} ms   {rate:.3g}/s"
            rows[3] = ("planner", _size(planner), INK)
            rows += [
                ("actions", chosen(record.thought.plan), INK),
                ("plan", plans, INK),
                ("provider", model.provider, INK),
            ]
        if record.clock is not None:
            age = "-" if record.clock.plan_age_ms is None else f"{record.clock.plan_age_ms:.0f} ms"
            rows.append(("clock", f"{record.clock.misses} missed   plan age {age}", INK))
        return rows


def chosen(plan: Plan | None) -> str:
    """What the actions come from, and the cost that the model predicts for each source."""
    if plan is None:
        return "-"
    others = [f"not {source} {cost:.3g}" for source, cost in plan.costs.items() if source != plan.source]
    return ", ".join([f"{plan.source} {plan.cost:.3g}", *others])


def _same(state: np.ndarray, other: np.ndarray | None) -> bool:
    return other is not None and np.array_equal(state, other)


def _size(planner: Planner) -> str:
    """A planner's size in a few words."""
    settings = planners.settings_of(planner)
    count, rounds = settings.get("candidates"), settings.get("iterations")
    sampled = f"   {count} x {rounds}" if count and rounds else ""
    return f"{planner.name}{sampled}   {planner.horizon} blocks"
