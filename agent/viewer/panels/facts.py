"""The facts in words: what there is to know about the episode, the planner and its time."""

import math
from collections.abc import Sequence

from agent import planning as planners
from agent.episodes.agents import Agent
from agent.episodes.episode import Step
from agent.planning.base import Plan, Planner
from agent.viewer.canvas import (
    ALARM,
    BODY,
    EDGE,
    FAINT,
    GOAL,
    IMAGINED,
    INK,
    MUTED,
    REAL,
    SMALL,
    Box,
    Canvas,
    Colour,
    wrap,
)
from agent.viewer.hud_state import HudState

Row = tuple[str, str, Colour]
"""A label, a value and its colour."""
PITCH = 24
PHASES: dict[str, Colour] = {"search": REAL, "rollout": IMAGINED, "propose": GOAL, "encode": (190, 140, 255)}
"""What a plan's time goes into, with the colour of its part of the bar."""


def facts(canvas: Canvas, box: Box, rows: Sequence[Row], plan: Plan | None, rule: str) -> None:
    """A label and a value a row, where the time of `plan` went, and the rule of success below."""
    canvas.panel(box)
    y = box.y + 10
    for label, value, colour in rows:
        canvas.text(label, box.x + 14, y + 1, SMALL, MUTED)
        canvas.text(value, box.x + 84, y, BODY, colour)
        y += PITCH
    if plan is not None:
        phases(canvas, Box(box.x + 84, y + 2, box.w - 98, 5), plan)
    lines = wrap(f"Reached: {rule}.", box.w - 28, SMALL)
    y = box.bottom - 8 - 15 * len(lines)
    canvas.fill(Box(box.x + 14, y - 5, box.w - 28, 1), EDGE)
    for number, line in enumerate(lines):
        canvas.text(line, box.x + 14, y + 15 * number, SMALL, MUTED)


def phases(canvas: Canvas, box: Box, plan: Plan) -> None:
    """The time of a plan by phase as a stacked bar with the milliseconds of each under it."""
    taken = {phase: plan.ms[phase] for phase in PHASES if plan.ms.get(phase, 0) > 0}
    total, x, left = sum(taken.values()), float(box.x), float(box.x)
    canvas.text("time", box.x - 70, box.y - 1, SMALL, MUTED)
    for phase, ms in taken.items():
        width = box.w * ms / total
        canvas.fill(Box(round(x), box.y, max(1, round(x + width) - round(x)), box.h), PHASES[phase])
        x += width
        left += canvas.text(f"{phase} {ms:.0f}", left, box.y + 7, SMALL - 1, PHASES[phase]) + 9
    canvas.text("ms", left, box.y + 7, SMALL - 1, FAINT)


def rows_of(hud: HudState, record: Step, agent: Agent, unit: str) -> list[Row]:
    """What there is to know; times and success are those of the planner that made the newest plan."""
    model, planner = agent.model, hud.planner or agent.planner
    distance = f"{record.distance:.3g} {unit}"
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
        rows[3] = ("planner", size_of(planner), INK)
        rows += [
            ("expects", chosen(record.thought.plan), INK),
            ("plan", plans, INK),
            ("provider", model.provider, INK),
        ]
    clock = []
    if record.misses or record.clock is not None:
        clock.append(f"{record.misses} missed")
    if record.misses and agent.floor_ms is not None:
        clock.append(f"shortest {agent.floor_ms:.0f} ms")
    if record.clock is not None and record.clock.plan_age_ms is not None:
        clock.append(f"age {record.clock.plan_age_ms:.0f} ms")
    if clock:
        rows.append(("deadline", "   ".join(clock), ALARM if record.misses else INK))
    return rows


def chosen(plan: Plan | None) -> str:
    """What the actions come from, and the latent distance (Euclidean) that the model predicts for each source."""
    if plan is None:
        return "-"
    others = [f"not {source} {math.sqrt(cost):.3g}" for source, cost in plan.costs.items() if source != plan.source]
    return ", ".join([f"{plan.source} {math.sqrt(plan.cost):.3g}", *others])


def size_of(planner: Planner) -> str:
    """A planner's size in a few words."""
    settings = planners.settings_of(planner)
    count, rounds = settings.get("candidates"), settings.get("iterations")
    sampled = f"   {count} x {rounds}" if count and rounds else ""
    return f"{planner.name}{sampled}   {planner.horizon} blocks"
