"""Lines of an evaluation to its summary: rates with intervals, spread over seeds, paired comparisons."""

import itertools
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from agent.episodes.outcome import percentile
from agent.evaluation.statistics import Rate, mcnemar, mean_and_std

Lines = Sequence[dict[str, Any]]


def summarise(
    task: str, models: Sequence[str], agents: Sequence[str], seeds: Sequence[int], lines: Lines
) -> dict[str, Any]:
    """The summary of `lines`, whose `subject` is the name of a model or of an agent that needs none.

    An episode that failed to run counts as not solved, and is listed.
    """
    by_subject = {subject: [line for line in lines if line["subject"] == subject] for subject in (*models, *agents)}
    return {
        "task": task,
        "seeds": list(seeds),
        "models": {model: _result(by_subject[model], seeds) for model in models},
        "agents": {agent: _result(by_subject[agent], seeds) for agent in agents},
        "comparisons": [
            _comparison(first, second, by_subject[first], by_subject[second])
            for first, second in itertools.combinations(models, 2)
        ],
        "failed": [
            {key: line[key] for key in ("subject", "seed", "pair", "error")} for line in lines if line.get("error")
        ],
    }


def _result(lines: Lines, seeds: Sequence[int]) -> dict[str, Any]:
    done = [line for line in lines if not line.get("error")]
    plan_ms = [ms for line in done for ms in line["plan_ms"]]
    return {
        "first_hit": _rates(lines, seeds, "success"),
        "final": _rates(lines, seeds, "final"),
        "final_distance": percentile([line["final_distance"] for line in done], 50),
        "plan_ms": {"p50": percentile(plan_ms, 50), "p95": percentile(plan_ms, 95)},
        "plans": sum(line["plans"] for line in done),
        "misses": sum(line["misses"] for line in done),
        "failed": len(lines) - len(done),
    }


def _rates(lines: Lines, seeds: Sequence[int], what: str) -> dict[str, Any]:
    """The pooled rate of `what`, each seed's own, and the mean and standard deviation of those."""
    outcomes = {seed: [bool(line.get(what)) for line in lines if line["seed"] == seed] for seed in seeds}
    by_seed = {str(seed): asdict(Rate.of(outcome)) for seed, outcome in outcomes.items() if outcome}
    pooled = asdict(Rate.of([outcome for seed in seeds for outcome in outcomes[seed]]))
    mean, std = mean_and_std([rate["rate"] for rate in by_seed.values()]) if by_seed else (None, None)
    return pooled | {"mean": mean, "std": std, "seeds": by_seed}


def _comparison(first: str, second: str, first_lines: Lines, second_lines: Lines) -> dict[str, Any]:
    """McNemar's test on the pairs that both models were given, by first hit."""
    ours = {(line["seed"], line["pair"]): bool(line.get("success")) for line in first_lines}
    theirs = {(line["seed"], line["pair"]): bool(line.get("success")) for line in second_lines}
    shared = sorted(ours.keys() & theirs.keys())
    only_first = [pair for pair in shared if ours[pair] and not theirs[pair]]
    only_second = [pair for pair in shared if theirs[pair] and not ours[pair]]
    return {
        "first": first,
        "second": second,
        "n": len(shared),
        "both": sum(ours[pair] and theirs[pair] for pair in shared),
        "neither": sum(not ours[pair] and not theirs[pair] for pair in shared),
        "only_first": len(only_first),
        "only_second": len(only_second),
        "p": mcnemar(len(only_first), len(only_second)),
        "only_first_pairs": [{"seed": seed, "pair": pair} for seed, pair in only_first],
        "only_second_pairs": [{"seed": seed, "pair": pair} for seed, pair in only_second],
    }


def table(summary: dict[str, Any]) -> list[list[str]]:
    """The summary as rows of text, the first one the heading."""
    rows = [["agent", "first hit", "final", "mean ± std over seeds", "median final distance", "plan ms p50 / p95", "n"]]
    for name, result in {**summary["models"], **summary["agents"]}.items():
        hit, plan_ms = result["first_hit"], result["plan_ms"]
        rows.append(
            [
                name,
                rate(hit),
                rate(result["final"]),
                "-" if hit["mean"] is None else f"{100 * hit['mean']:.1f} ± {100 * hit['std']:.1f}",
                "-" if result["final_distance"] is None else f"{result['final_distance']:.3g}",
                "-" if plan_ms["p50"] is None else f"{plan_ms['p50']:.0f} / {plan_ms['p95']:.0f}",
                str(hit["n"]),
            ]
        )
    return rows


def sentences(summary: dict[str, Any]) -> list[str]:
    """What a table cannot say: paired comparisons and failures."""
    said = [
        f"{one['first']} against {one['second']} on {one['n']} pairs: both solve {one['both']}, only the first "
        f"{one['only_first']}, only the second {one['only_second']}, neither {one['neither']} "
        f"(McNemar p = {one['p']:.3g})."
        for one in summary["comparisons"]
    ]
    said += [
        f"{one['subject']}, seed {one['seed']}, pair {one['pair']} failed and counts as not solved: {one['error']}"
        for one in summary["failed"]
    ]
    return said


def markdown(summary: dict[str, Any]) -> str:
    """The summary for people, as a Markdown page."""
    lines = [f"# {summary['task']}, seeds {' '.join(map(str, summary['seeds']))}", "", *lines_of(table(summary))]
    lines += ["", "Rates with Wilson 95 % intervals.", *sentences(summary)]
    return "\n".join(lines) + "\n"


def lines_of(table: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text, the first one the heading, as a Markdown table."""
    heading, *rest = table
    return [f"| {' | '.join(row)} |" for row in (heading, ["---"] * len(heading), *rest)]


def rate(found: dict[str, Any]) -> str:
    """A rate of the summary with its interval."""
    return str(Rate(found["rate"], found["low"], found["high"], found["n"]))
