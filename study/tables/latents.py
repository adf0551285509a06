"""Tables 2 and 3: how Gaussian latents are, and what probes read from them."""

from collections.abc import Sequence

import numpy as np

from envs import TASKS
from study.cells import Run, Study
from study.tables import paper
from study.tables.format import NAMES, NONE, Table, gap, interval, normality, spread

SHAPE = {
    "ks": ("KS", 3),
    "ep": ("EP", 1),
    "qq_rmse": ("QQ RMSE", 3),
    "tail_rate": ("tail rate (0.1)", 3),
    "radius_mean": ("mean r²/d (1)", 3),
    "radius_variance": ("var r²/2d (1)", 2),
    "kurtosis": ("kurtosis (3)", 2),
    "effective_rank": ("rank (d)", 1),
}
"""Measures with their heading (a standard normal's value in brackets) and digits."""
COMPARED = ("lewm", "qqworld", "qqworld corrected")
FACTORS = {
    "agent location": ("agent_x", "agent_y"),
    "block location": ("block_x", "block_y"),
    "block angle": ("cos block_angle", "sin block_angle"),
}
PROBES = ("linear", "mlp")


def normality_table(study: Study) -> Table:
    """KS and EP averaged over tasks, and what else tells scale, anisotropy and tails apart, task by task."""
    rows = [["task", "objective", "runs", "d", *(title for title, _ in SHAPE.values())]]
    for task in TASKS:
        for arm in COMPARED:
            if runs := study.runs(arm, task):
                size = str(runs[0].kept["run"]["network"]["latent"])
                found = [spread(normality(runs, key), digits) for key, (_, digits) in SHAPE.items()]
                rows.append([task, NAMES[arm], str(len(runs)), size, *found])
    tasks = [task for task in TASKS if study.runs("lewm", task) and study.runs("qqworld", task)]
    means = [["objective", "tasks", "KS", "paper's KS", "EP", "paper's EP"]]
    for arm in COMPARED if tasks else ():
        if all(study.runs(arm, task) for task in tasks):
            theirs = paper.NORMALITY.get(arm, {})
            published = [f"{theirs[key]:g}" if theirs else NONE for key in ("ks", "ep")]
            ks, ep = (mean_over(study, arm, tasks, key) for key in ("ks", "ep"))
            means.append([NAMES[arm], str(len(tasks)), f"{ks:.3f}", published[0], f"{ep:.1f}", published[1]])
    caption = (
        "By task, mean ± standard deviation over runs. EP is rescaled to 20,000 latents, with whose number it grows. "
        "Tail rates are to be compared within a task only: they depend on the latent's size d."
    )
    parts = (("**Average over tasks**", means), (caption, rows))
    return Table("Table 2: normality of the latents", study.progress, parts, normality_sentence(study, tasks))


def mean_over(study: Study, arm: str, tasks: Sequence[str], key: str) -> float:
    """The mean over tasks of a measure's mean over runs."""
    return float(np.mean([np.mean(normality(study.runs(arm, task), key)) for task in tasks]))


def normality_sentence(study: Study, tasks: Sequence[str]) -> str:
    """Whether QQ's latents are nearer to a normal than EP's, as in the paper."""
    if not tasks:
        return ""
    told = []
    for key in ("ks", "ep"):
        ours, theirs = (mean_over(study, arm, tasks, key) for arm in ("qqworld", "lewm"))
        before, after = (paper.NORMALITY[arm][key] for arm in ("lewm", "qqworld"))
        change, published = 100 * (ours / theirs - 1), 100 * (after / before - 1)
        same = "reproduced" if change < 0 else "not reproduced"
        told.append(f"{key.upper()} changes by {change:+.1f} % (paper {published:+.1f} %: {same})")
    force = [{run.config.regulariser.strength for run in study.runs(arm)} for arm in ("qqworld", "lewm")]
    equal = " with equal strength" if force[0] == force[1] else ""
    text = f"From LeWM to QQWorld{equal}, over {len(tasks)} of 4 tasks, {' and '.join(told)}."
    return f"{text} {corrected_sentence(study)}".strip()


def corrected_sentence(study: Study) -> str:
    """Whether corrected targets give back tail and radial variance."""
    tasks = [task for task in TASKS if study.runs("qqworld", task) and study.runs("qqworld corrected", task)]
    if not tasks:
        return ""
    tails, radii = 0, 0
    for task in tasks:
        arms = study.runs("qqworld", task), study.runs("qqworld corrected", task)
        plain, mended = (abs(np.mean(normality(runs, "radius_variance")) - 1) for runs in arms)
        radii += int(mended < plain)
        tails += int(abs(np.mean(normality(arms[1], "tail_rate")) - 0.1) <= 0.03)
    return (
        f"Corrected targets give a tail rate of 0.10 ± 0.03 on {tails} of {len(tasks)} tasks, and a radial variance "
        f"nearer to a normal's than plain QQ on {radii}."
    )


def probe_table(studies: Sequence[Study]) -> Table:
    """Probes on PushT: MSE of z-scored factors and Pearson r."""
    rows = [["property", "plan", "objective", "runs", *(f"{kind} {what}" for kind in PROBES for what in ("MSE", "r"))]]
    for factor in FACTORS:
        for study in studies:
            for arm in COMPARED:
                if runs := study.runs(arm, "pusht"):
                    found = [
                        spread([probe(run, kind, factor, part) for run in runs], 3)
                        for kind in PROBES
                        for part in (0, 1)
                    ]
                    rows.append([factor, study.plan.name, NAMES[arm], str(len(runs)), *found])
        for arm in ("lewm", "qqworld") if len(rows) > 1 else ():
            published = [f"{number:.3f}" for kind in PROBES for number in paper.PROBES[factor][arm][kind]]
            rows.append([factor, "paper", NAMES[arm], NONE, *published])
    title = "Table 3: what probes read from PushT's latents"
    progress = " ".join(f"{study.plan.name}: {study.progress}" for study in studies if study.progress)
    caption = "Mean ± standard deviation over training runs; a run's value is a mean over six probe seeds."
    return Table(title, progress, ((caption, rows),), probe_sentence(studies))


def probe(run: Run, kind: str, factor: str, part: int) -> float:
    """MSE (`part` 0) or r (1), averaged over the columns of a factor."""
    return float(np.mean([run.kept["probes"][kind][name][part] for name in FACTORS[factor]]))


def probe_sentence(studies: Sequence[Study]) -> str:
    """In how many errors QQ is lower, and the difference by run where there are enough."""
    told = []
    for study in studies:
        ours, theirs = (study.runs(arm, "pusht") for arm in ("qqworld", "lewm"))
        if not ours or not theirs:
            continue
        probes = [(kind, factor) for factor in FACTORS for kind in PROBES]
        errors = [[np.mean([probe(run, *which, 0) for run in runs]) for which in probes] for runs in (ours, theirs)]
        lower = sum(one < other for one, other in zip(*errors, strict=True))
        text = f"{study.plan.name}: QQWorld has the lower error in {lower} of 6 probes (paper: lower or equal in 6)"
        angle = gap(ours, theirs, lambda run: probe(run, "mlp", "block angle", 1))
        told.append(text + (f"; r of the MLP for the block's angle differs by {interval(angle)}" if angle else ""))
    return f"{'. '.join(told)}." if told else ""
