"""What the keys do and what the panels show."""

from collections.abc import Sequence

from agent.viewer.canvas import BODY, IMAGINED, INK, LARGE, MUTED, SMALL, Box, Canvas, wrap

PITCH = 26


def help_card(canvas: Canvas, keys: Sequence[tuple[str, str]], panels: Sequence[tuple[str, str]]) -> None:
    """All keys on a plate in the middle, and what the panels show beside them."""
    width, height = canvas.size
    canvas.pixels[:] = canvas.pixels // 3
    tall = PITCH * len(keys) + 68
    box = Box(width // 2 - 500, height // 2 - tall // 2, 1000, tall)
    canvas.panel(box)
    canvas.text("Keys and mouse", box.x + 28, box.y + 20, LARGE, INK)
    for number, (key, meaning) in enumerate(keys):
        canvas.text(key, box.x + 130, box.y + 54 + PITCH * number, BODY, IMAGINED, "right")
        canvas.text(meaning, box.x + 150, box.y + 54 + PITCH * number, BODY, INK)
    x, y = box.x + 520, box.y + 54
    canvas.text("What the panels show", x, box.y + 20, LARGE, INK)
    for name, meaning in panels:
        canvas.text(name, x, y, BODY, IMAGINED)
        for line in wrap(meaning, 450, SMALL):
            y += 18
            canvas.text(line, x, y, SMALL, MUTED)
        y += 25
