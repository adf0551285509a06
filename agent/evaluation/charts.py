"""Two small charts as SVG text: rates over distance with their intervals, and histograms of time."""

import html
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from agent.evaluation.statistics import Rate

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 52, 16, 12, 44
COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#6b7280")
Outcomes = Sequence[tuple[float, bool]]
Scale = Callable[[float], float]


def rate_over_distance(outcomes: Mapping[str, Outcomes], unit: str, bins: int = 6) -> str:
    """Success rate against the distance from start to goal, in bins that hold equally many episodes."""
    everything = [distance for pairs in outcomes.values() for distance, _ in pairs]
    if not everything:
        return ""
    edges = np.unique(np.quantile(everything, np.linspace(0, 1, bins + 1)))
    if len(edges) == 1:
        edges = np.array([edges[0], edges[0] + 1e-9])
    x, y = _scale(max(everything), LEFT, WIDTH - RIGHT), _scale(1, HEIGHT - BOTTOM, TOP)
    parts = _frame(x, y, max(everything), 1.0, f"distance from start to goal ({unit})", "success rate")
    for number, pairs in enumerate(outcomes.values()):
        points = []
        which = np.clip(np.searchsorted(edges, [d for d, _ in pairs], side="right") - 1, 0, len(edges) - 2)
        for one in range(len(edges) - 1):
            inside = [pair for pair, place in zip(pairs, which, strict=True) if place == one]
            if inside:
                centre = float(np.mean([distance for distance, _ in inside]))
                points.append((centre, Rate.of([success for _, success in inside])))
        colour = COLOURS[number % len(COLOURS)]
        aside = 5 * number  # so that intervals do not hide one another
        for centre, rate in points:
            at, low, high = x(centre) + aside, y(rate.low), y(rate.high)
            parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="{colour}"/>')
            parts.append(f'<circle cx="{at:.1f}" cy="{y(rate.rate):.1f}" r="4" fill="{colour}"/>')
        path = " ".join(f"{x(centre) + aside:.1f},{y(rate.rate):.1f}" for centre, rate in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return _svg(parts, list(outcomes), "success against distance")


def histogram(values: Mapping[str, Sequence[float]], unit: str, bins: int = 30) -> str:
    """How often each value occurs, one outline for each series."""
    everything = [value for series in values.values() for value in series]
    if not everything:
        return ""
    edges = np.linspace(0, max(everything) * 1.001, bins + 1)
    counts = {name: np.histogram(series, edges)[0] for name, series in values.items()}
    most = max(int(count.max()) for count in counts.values())
    x, y = _scale(edges[-1], LEFT, WIDTH - RIGHT), _scale(most, HEIGHT - BOTTOM, TOP)
    parts = _frame(x, y, edges[-1], most, f"time for a plan ({unit})", "plans")
    for number, count in enumerate(counts.values()):
        colour = COLOURS[number % len(COLOURS)]
        steps = [(edges[0], 0)]
        for one, height in enumerate(count):
            steps += [(edges[one], height), (edges[one + 1], height)]
        path = " ".join(f"{x(at):.1f},{y(height):.1f}" for at, height in [*steps, (edges[-1], 0)])
        parts.append(f'<polygon points="{path}" fill="{colour}" fill-opacity="0.25" stroke="{colour}"/>')
    return _svg(parts, list(values), "histogram of plan times")


def _scale(most: float, start: float, end: float) -> Scale:
    return lambda value: start + (end - start) * value / (most or 1)


def _marks(most: float) -> list[float]:
    """Round numbers from 0 to `most`, four to nine of them."""
    step = 10 ** math.floor(math.log10(most)) if most > 0 else 1.0
    step *= 0.2 if most / step < 2 else 0.5 if most / step < 5 else 1
    return [number * step for number in range(int(most / step + 1e-9) + 1)]


def _frame(x: Scale, y: Scale, x_most: float, y_most: float, x_name: str, y_name: str) -> list[str]:
    """Axes with round marks."""
    parts = []
    for mark in _marks(y_most):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(mark):.1f}" y2="{y(mark):.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(mark) + 4:.1f}" text-anchor="end">{mark:g}</text>')
    for mark in _marks(x_most):
        parts.append(f'<text x="{x(mark):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{mark:g}</text>')
    middle = (HEIGHT - BOTTOM + TOP) / 2
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(x_name)}</text>')
    turned = f'text-anchor="middle" transform="rotate(-90 14 {middle})"'
    parts.append(f'<text x="14" y="{middle}" {turned}>{html.escape(y_name)}</text>')
    return parts


def _svg(parts: list[str], names: list[str], title: str) -> str:
    """A figure with a key above it."""
    key = " ".join(
        f'<span style="color: {COLOURS[number % len(COLOURS)]}">■ {html.escape(name)}</span>'
        for number, name in enumerate(names)
    )
    body = "\n".join(parts)
    return f'<p>{key}</p>\n<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">\n{body}\n</svg>'
