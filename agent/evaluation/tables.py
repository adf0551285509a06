"""One table from the summaries of several evaluations.

    python -m agent.evaluation.tables docs/results

Reads every summary.json below a folder and prints Markdown: a row for each task, distance of the goals, planner and
model, the agents that do not plan on the same pairs, and the paired comparisons.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

import envs
from agent.evaluation.summary import lines_of, rate
from envs.errors import BadInput, parse_command_line, run

HEADING = (
    "task", "offset", "planner", "model", "first hit", "mean ± std over seeds", "final", "plan ms p50 / p95", "random",
    "zero",
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """One table from the summaries of several evaluations."""

    folder: Annotated[Path, tyro.conf.Positional] = Path("docs/results")
    """Where the evaluations are."""


def read(folder: Path) -> list[dict[str, Any]]:
    """The summaries below `folder`, by task, offset and folder."""
    files = sorted(folder.rglob("summary.json"))
    if not files:
        raise BadInput(f"there is no summary.json below {folder}: evaluate first, or name another folder")
    try:
        summaries = [json.loads(file.read_text()) for file in files]
        tasks = list(envs.TASKS)
        return sorted(summaries, key=lambda one: (tasks.index(one["task"]), one["configuration"]["offset"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"a summary.json below {folder} is not one of an evaluation ({error})") from error


def rows(summaries: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A row for every model of every summary, and the heading first."""
    found = [list(HEADING)]
    for summary in summaries:
        configuration = summary["configuration"]
        for model, result in summary["models"].items():
            hit, plan_ms = result["first_hit"], result["plan_ms"]
            planner = configuration["models"][model]["planner"]["name"]
            found.append(
                [
                    summary["task"],
                    str(configuration["offset"]),
                    planner + (", real time" if configuration["realtime"] else ""),
                    Path(model).stem,
                    rate(hit),
                    f"{100 * hit['mean']:.1f} ± {100 * hit['std']:.1f}",
                    rate(result["final"]),
                    f"{plan_ms['p50']:.0f} / {plan_ms['p95']:.0f}",
                    *(percent(summary["agents"].get(agent)) for agent in ("random", "zero")),
                ]
            )
    return found


def percent(result: dict[str, Any] | None) -> str:
    """How often an agent succeeded at first hit."""
    return "-" if result is None else f"{100 * result['first_hit']['rate']:.1f}%"


def comparisons(summaries: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A row for every two models that an evaluation compared pair by pair, and the heading first."""
    found = [["task", "offset", "planner", "first", "second", "only first", "only second", "McNemar p"]]
    for summary in summaries:
        configuration = summary["configuration"]
        for one in summary["comparisons"]:
            planner = configuration["models"][one["first"]]["planner"]["name"]
            names = [Path(one[which]).stem for which in ("first", "second")]
            counts = [str(one["only_first"]), str(one["only_second"]), f"{one['p']:.3g}"]
            found.append([summary["task"], str(configuration["offset"]), planner, *names, *counts])
    return found


def main() -> None:
    summaries = read(parse_command_line(Table, __doc__).folder)
    print(*lines_of(rows(summaries)), "", *lines_of(comparisons(summaries)), sep="\n")


if __name__ == "__main__":
    run(main)
