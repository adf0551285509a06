"""Confirmation: the plan's contrast by training run, with what it excludes and what it could have found."""

import numpy as np

from agent.evaluation.statistics import mcnemar
from study.cells import MEASURES, Study, contrast
from study.statistics import power
from study.tables.format import NAMES, NONE, Rows, Table, both, p_value, points, success, verdict


def table(study: Study) -> Table:
    """The contrast for each planner and measure, and pair by pair within each run."""
    asked = study.plan.contrast
    caption = (
        f"{NAMES[asked.first]} minus {NAMES[asked.second]} in points, paired by training seed. The primary endpoint, "
        f"written down before the first run, is `{asked.planner}`, {MEASURES[asked.measure]}."
    )
    within = (
        f"Within single runs, `{asked.planner}`, {MEASURES[asked.measure]}: pairs that only one of the two solves. "
        "McNemar's p is about these two runs, not about the objectives."
    )
    parts = ((caption, differences(study)), (within, pair_by_pair(study)))
    task = study.plan.cells[0].task
    return Table(f"Confirmation on {task}", study.progress, parts, sentence(study))


def differences(study: Study) -> Rows:
    """A row for each planner and measure."""
    asked = study.plan.contrast
    heading = ["planner", "success", "runs", NAMES[asked.first], NAMES[asked.second], "difference", "95 % t interval"]
    rows = [[*heading, "95 % bootstrap", "p", "p of 5 points or more", "found 8 times in 10", "power for 5 points"]]
    for planner in study.plan.evaluation.planners:
        for measure, when in MEASURES.items():
            first, second = study.runs(asked.first), study.runs(asked.second)
            found = contrast(first, second, planner, measure)
            if found is None:
                continue
            primary = (planner, measure) == (asked.planner, asked.measure)
            sure = found.runs > 1
            rows.append(
                [f"`{planner}`" + (" (primary)" if primary else ""), when, str(found.runs)]
                + [success(runs, planner, measure) for runs in (first, second)]
                + [f"{100 * found.mean:+.1f}", both(found.low, found.high), both(found.boot_low, found.boot_high)]
                + [p_value(found.p), p_value(found.p_equivalent)]
                + [f"{100 * found.detectable:.1f}" if sure else NONE]
                + [f"{power(0.05, found.std, found.runs):.2f}" if sure else NONE]
            )
    return rows


def pair_by_pair(study: Study) -> Rows:
    """McNemar's test within the two runs of each training seed."""
    asked = study.plan.contrast
    rows = [["training seed", "pairs", f"only {NAMES[asked.first]}", f"only {NAMES[asked.second]}", "McNemar p"]]
    theirs = {run.config.seed: run for run in study.runs(asked.second)}
    for run in study.runs(asked.first):
        if run.config.seed in theirs:
            one, other = (some.outcomes(asked.planner, asked.measure) for some in (run, theirs[run.config.seed]))
            only = int(np.sum(one & ~other)), int(np.sum(other & ~one))
            rows.append([str(run.config.seed), str(len(one)), *map(str, only), f"{mcnemar(*only):.2g}"])
    return rows


def sentence(study: Study) -> str:
    """The answer of the primary endpoint."""
    asked = study.plan.contrast
    found = contrast(study.runs(asked.first), study.runs(asked.second), asked.planner, asked.measure)
    if found is None:
        return study.diverged
    text = f"{NAMES[asked.first]} minus {NAMES[asked.second]} = {points(found)} over {found.runs} training runs of each"
    return f"{text}: {verdict(found, NAMES[asked.first], NAMES[asked.second])}. {study.diverged}".strip()
