"""Table 1: success of every objective on every task, with the published planner and with the tuned one."""

from envs import TASKS
from study.cells import MEASURES, Study, contrast
from study.tables import paper
from study.tables.format import NAMES, NONE, Rows, Table, listed, points, success, verdict


def table(study: Study) -> Table:
    """Success in per cent by task, and the average over tasks."""
    planners = list(study.plan.evaluation.planners)
    heading = ["objective", "runs", *(f"`{planner}`, {when}" for planner in planners for when in MEASURES.values())]
    parts = [(f"**{task}**", by_task(study, task, [*heading, "paper"])) for task in TASKS]
    parts.append(("**average over the tasks**", averages(study)))
    return Table("Table 1: planning success", study.progress, tuple(parts), sentence(study))


def by_task(study: Study, task: str, heading: list[str]) -> Rows:
    """A row for each objective that has runs."""
    rows = [heading]
    for arm in study.arms():
        if runs := study.runs(arm, task):
            found = [
                success(runs, planner, measure) for planner in study.plan.evaluation.planners for measure in MEASURES
            ]
            rows.append([NAMES[arm], str(len(runs)), *found, paper.planning(arm, task)])
    return rows


def averages(study: Study) -> Rows:
    """Means over tasks of first hits, for objectives with runs on all of them; the paper's beside it."""
    planners = list(study.plan.evaluation.planners)
    rows = [["objective", *(f"`{planner}`, first hit" for planner in planners), "paper"]]
    for arm in study.arms():
        runs = [study.runs(arm, task) for task in TASKS]
        if not all(runs):
            continue
        means = [average(study, arm, planner) for planner in planners]
        published = paper.PLANNING.get(arm)
        theirs = f"{sum(mean for mean, _ in published.values()) / len(TASKS):.2f}" if published else NONE
        rows.append([NAMES[arm], *(f"{mean:.1f}" for mean in means), theirs])
    return rows


def average(study: Study, arm: str, planner: str) -> float:
    """Mean over tasks of the mean over runs, in per cent."""
    rates = [[run.outcomes(planner, "first_hit").mean() for run in study.runs(arm, task)] for task in TASKS]
    return 100 * sum(sum(one) / len(one) for one in rates) / len(rates)


def sentence(study: Study) -> str:
    """What is left of the paper's claim that QQWorld is ahead of LeWM on every task."""
    first, second, planner, measure = vars(study.plan.contrast).values()
    found = {
        task: difference
        for task in TASKS
        if (difference := contrast(study.runs(first, task), study.runs(second, task), planner, measure))
    }
    if not found:
        return study.diverged
    theirs = [f"{paper.PLANNING[first][task][0] - paper.PLANNING[second][task][0]:+.1f}" for task in found]
    ahead = [task for task, difference in found.items() if difference.low > 0]
    told = [f"{task} {points(one)}, {verdict(one, NAMES[first], NAMES[second])}" for task, one in found.items()]
    claim = f"reproduced on {listed(ahead)}" if ahead else "not reproduced on any task"
    return (
        f"{NAMES[first]} minus {NAMES[second]}, `{planner}`, {MEASURES[measure]}: {'; '.join(told)}. "
        f"The paper has {listed(theirs)} points there: its advantage is {claim}. "
        f"DINO-WM, which the paper cites, is not part of this study. {study.diverged}"
    ).strip()
