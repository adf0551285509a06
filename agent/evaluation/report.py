"""The page of an evaluation: table, charts and a few episodes to watch, all in one HTML file."""

import base64
import html
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import imageio.v2 as imageio
import numpy as np
from numpy.typing import ArrayLike

from agent.evaluation import charts, summary
from agent.evaluation.results import Key, key
from envs import BadInput, Task

SIDE, VIDEOS = 192, 6
Line = dict[str, Any]

STYLE = """
:root { color-scheme: light dark; --faint: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } td, th { padding: .3rem .8rem; border-bottom: 1px solid var(--faint); }
th { text-align: left; vertical-align: bottom; } td + td { font-variant-numeric: tabular-nums; white-space: nowrap; }
svg { width: 100%; max-width: 44rem; } svg text { font-size: 12px; fill: currentColor; } .grid { stroke: var(--faint); }
.videos { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: 1rem; }
figure { margin: 0; } video { width: 100%; background: #8882; } figcaption, .small { font-size: .85rem; opacity: .8; }
"""


def page(task: Task, result: dict[str, Any], lines: Sequence[Line], replays: Sequence[Line]) -> str:
    """The page as HTML text; `replays` are whole lines of the episodes to show."""
    heading, *rows = summary.table(result)
    models = [*result["models"]]
    charted = [*models, *(["random"] if "random" in result["agents"] else [])]
    done = [line for line in lines if not line.get("error")]
    outcomes = {
        name: [(line["start_distance"], line["success"]) for line in done if line["subject"] == name]
        for name in charted
    }
    plan_ms = {name: [ms for line in done if line["subject"] == name for ms in line["plan_ms"]] for name in models}
    title = f"{task.name}: {', '.join(models) or 'agents without a model'}"
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>',
            '<link rel="icon" href="data:,">',
            f"<style>{STYLE}</style></head><body>",
            f"<h1>{_text(title)}</h1>",
            f"<p>Success: {_text(task.rule)}. Seeds {_text(' '.join(map(str, result['seeds'])))}; "
            "rates with Wilson 95 % intervals.</p>",
            "<table><thead><tr>" + "".join(f"<th>{_text(cell)}</th>" for cell in heading) + "</tr></thead><tbody>",
            *("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows),
            "</tbody></table>",
            *(f"<p>{_text(sentence)}</p>" for sentence in summary.sentences(result)),
            "<h2>Success against distance</h2>",
            charts.rate_over_distance(outcomes, task.unit),
            *(["<h2>Time for a plan</h2>", charts.histogram(plan_ms, "ms")] if any(plan_ms.values()) else []),
            "<h2>Episodes</h2><p class='small'>Left the world, right the goal.</p><div class='videos'>",
            *_figures(task, replays),
            "</div>",
            "<h2>Configuration</h2><pre class='small'>" + _text(_pretty(result["configuration"])) + "</pre>",
            "</body></html>",
        ]
    )


def worth_watching(result: dict[str, Any], lines: Sequence[Line]) -> set[Key]:
    """Six episodes of the first model: three solved and three not, or more of one where the other is short."""
    first = next(iter([*result["models"], *result["agents"]]))
    mine = [line for line in lines if line["subject"] == first and not line.get("error")]
    solved, unsolved = ([key(line) for line in mine if line["success"] is wanted] for wanted in (True, False))
    few = min(len(unsolved), max(VIDEOS // 2, VIDEOS - len(solved)))
    return {*solved[: VIDEOS - few], *unsolved[:few]}


def replay(task: Task, line: Line) -> Iterator[np.ndarray]:
    """The states `(S,)` of a logged episode, by its actions and pushes."""
    state = np.array(line["start"])
    pushes = dict(line["pushes"])
    yield state
    for step, action in enumerate(line["actions"]):
        if step in pushes:
            state = state.copy()
            state[list(task.movable)] += pushes[step]
        state = task.advance(state, np.array(action))
        yield state


def _figures(task: Task, replays: Sequence[Line]) -> Iterator[str]:
    try:
        for line in replays:
            verdict = f"solved at step {line['first_hit']}" if line["success"] else "not solved"
            caption = f"{line['subject']}, seed {line['seed']}, pair {line['pair']}: {verdict}"
            yield (
                f'<figure><video autoplay controls muted loop playsinline src="{_video(task, line)}"></video>'
                f"<figcaption>{_text(caption)}</figcaption></figure>"
            )
    except BadInput as error:  # no GL here, but the numbers stand
        yield f"<p>No pictures: {_text(str(error))}</p>"


def _video(task: Task, line: Line) -> str:
    """An episode beside its goal as an MP4 inside a URL."""
    goal = task.picture(SIDE, np.array(line["goal"]))
    frames: list[ArrayLike] = [np.hstack([task.picture(SIDE, state), goal]) for state in replay(task, line)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "episode.mp4"
        imageio.mimwrite(path, frames, fps=task.control_hz, macro_block_size=16, quality=6)
        return "data:video/mp4;base64," + base64.b64encode(path.read_bytes()).decode()


def _pretty(configuration: dict[str, Any]) -> str:
    lines = [f"{name}: {value}" for name, value in configuration.items() if name != "models"]
    for name, model in configuration["models"].items():
        lines += [f"{name}", f"  sha256 {model['sha256']}"]
        lines += [f"  {setting}: {value}" for setting, value in model["planner"].items()]
    return "\n".join(lines)


def _text(text: str) -> str:
    return html.escape(text)
