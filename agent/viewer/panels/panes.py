"""Pictures with what is drawn over them."""

import numpy as np

from agent.planning.base import Plan
from agent.viewer import overlay
from agent.viewer.canvas import LARGE, MUTED, SMALL, Box, Canvas, Colour
from envs import Task

FAN, ELITES = 60, 10
"""Candidates and elites that are drawn."""


def pane(canvas: Canvas, box: Box, title: str, note: str, colour: Colour, picture: np.ndarray | None) -> None:
    """A picture with its title above; without a picture an empty plate."""
    width = canvas.text(title, box.x, box.y - 23, LARGE, colour)
    canvas.text(note, box.x + width + 10, box.y - 19, SMALL, MUTED)
    if picture is None:
        canvas.panel(box)
    else:
        canvas.picture(picture, box, colour)


def fan(canvas: Canvas, box: Box, task: Task, state: np.ndarray, plan: Plan, begun: int) -> bool:
    """Where the candidates, the elites and the plan lead from `state`; `begun` actions of it have been carried out.

    False where the task does not say where actions lead.
    """

    def lines(actions: np.ndarray) -> np.ndarray | None:
        steps = actions.reshape(len(actions), -1, len(task.action_names))[:, begun:]
        shares = overlay.paths(task, state, steps)
        return None if shares is None else shares * box.w + np.array(box[:2])

    spread = np.linspace(0, len(plan.candidates) - 1, min(FAN, len(plan.candidates))).round().astype(int)
    candidates, elites, chosen = lines(plan.candidates[spread]), lines(plan.elites[:ELITES]), lines(plan.actions[None])
    if candidates is None or elites is None or chosen is None:
        return False
    canvas.lines(candidates, (126, 110, 196), 1, 0.35, box)
    canvas.lines(elites, (238, 120, 40), 1, 0.8, box)
    canvas.lines(chosen, (214, 60, 50), 2, 1.0, box)
    if chosen.shape[1] > 1:
        x, y = np.clip(chosen[0, -1], (box.x + 5, box.y + 5), (box.right - 5, box.bottom - 5))
        canvas.dot(x, y, 4, (214, 60, 50))
    return True
