"""Dose and response: success and normality against the effective strength of the regulariser."""

from study.cells import Run, Study, contrast
from study.tables.format import NAMES, Table, normality, points, spread, success, verdict
from study.tables.latents import SHAPE

SHOWN = ("qq_rmse", "ks", "tail_rate", "radius_variance", "kurtosis", "effective_rank")


def strength(run: Run) -> float:
    """The effective strength of a run's regulariser."""
    return run.config.regulariser.strength or 0.0


def table(study: Study) -> Table:
    """A row for each strength and objective."""
    planners = list(study.plan.evaluation.planners)
    rows = [["strength", "objective", "runs", *(f"`{planner}`, first hit" for planner in planners)]]
    rows[0] += ["5-step error", *(SHAPE[key][0] for key in SHOWN)]
    for dose in sorted({strength(run) for run in study.runs()}):
        for arm in study.arms():
            if runs := [run for run in study.runs(arm) if strength(run) == dose]:
                rates = [success(runs, planner, "first_hit") for planner in planners]
                error = spread([run.kept["held_out"]["error_5"] for run in runs], 3)
                shape = [spread(normality(runs, key), SHAPE[key][1]) for key in SHOWN]
                rows.append([f"{dose:g}", NAMES[arm], str(len(runs)), *rates, error, *shape])
    caption = "Two-Room. Strength is the weight of mean-QQ that pulls as strongly near a Gaussian."
    return Table("Strength: dose and response", study.progress, ((caption, rows),), sentence(study))


def sentence(study: Study) -> str:
    """Whether an advantage of QQ survives at equal strength, and whether corrected targets help."""
    asked = study.plan.contrast
    told = []
    for first in (asked.first, f"{asked.first} corrected"):
        second = asked.second if first == asked.first else asked.first
        runs = study.runs(first), study.runs(second)
        found = contrast(*runs, asked.planner, asked.measure, key=lambda run: (strength(run), run.config.seed))
        if found is None:
            continue
        doses = []
        for dose in sorted({strength(run) for run in runs[0]}):
            ours, theirs = ([run for run in some if strength(run) == dose] for some in runs)
            if one := contrast(ours, theirs, asked.planner, asked.measure):
                doses.append(f"{points(one)} at {dose:g}")
        told.append(
            f"{NAMES[first]} minus {NAMES[second]} at equal strength, `{asked.planner}`: {points(found)} over "
            f"{found.runs} pairs of runs, {verdict(found, NAMES[first], NAMES[second])} ({', '.join(doses)})."
        )
    return f"{' '.join(told)} {study.diverged}".strip()
