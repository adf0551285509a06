"""Table 4: batch and queue at equal frames, with corrected targets and EP at the small batch."""

from collections.abc import Sequence

import numpy as np

from study.cells import Run, Study, contrast
from study.tables import paper
from study.tables.format import NAMES, NONE, Table, normality, points, spread, success, verdict

Arm = tuple[str, int, int]
"""What is compared here: objective with its targets, batch, and queue length K+1 as the paper counts it."""
PLAIN: Arm = ("qqworld", 32, 1)
QUESTIONS: dict[str, Arm] = {
    "a queue of three batches": ("qqworld", 32, 3),
    "a batch of 128": ("qqworld", 128, 1),
    "correcting the targets": ("qqworld corrected", 32, 1),
    "EP in place of QQ": ("lewm", 32, 1),
}
"""What is tried against `PLAIN`."""


def table(study: Study) -> Table:
    """Success and memory by batch and queue length."""
    planners = list(study.plan.evaluation.planners)
    heading = ["objective", "batch N", "queue length K+1", "total M", "runs"]
    heading += [f"`{planner}`, first hit" for planner in planners] + ["`lewm`, last step", "QQ RMSE"]
    rows = [[*heading, "training memory", "paper's success", "paper's GPU memory"]]
    arms = sorted({arm_of(run) for run in study.runs()}, key=lambda arm: (arm[0] != "qqworld", *arm[1:], arm[0]))
    for name, batch, length in arms:
        runs = of(study, (name, batch, length))
        memory = memory_mb(runs)
        published = paper.QUEUE.get((batch, length)) if name == "qqworld" else None
        row = [NAMES[name], str(batch), str(length) if name != "lewm" else NONE, str(batch * length), str(len(runs))]
        row += [success(runs, planner, "first_hit") for planner in planners] + [success(runs, "lewm", "final")]
        row += [spread(normality(runs, "qq_rmse"), 3), NONE if memory is None else f"{memory:.0f} MB"]
        rows.append(row + ([f"{published[0]:.2f}", f"{published[1]:.0f} MB"] if published else [NONE, NONE]))
    caption = (
        "Two-Room; the paper averages over four tasks. Training memory is what training steps add to a process on the "
        "CPU. Every row sees as many windows."
    )
    return Table("Table 4: batch and queue", study.progress, ((caption, rows),), sentence(study))


def arm_of(run: Run) -> Arm:
    """The arm of a run; our `queue` K counts previous batches only."""
    return run.arm, run.config.batch, (run.config.regulariser.queue or 0) + 1


def of(study: Study, arm: Arm) -> list[Run]:
    """The runs of an arm."""
    return [run for run in study.runs() if arm_of(run) == arm]


def memory_mb(runs: Sequence[Run]) -> float | None:
    """What training adds to a process, a mean over runs; None if no run says it."""
    found = [run.kept["training_mb"] for run in runs if run.kept.get("training_mb") is not None]
    return float(np.mean(found)) if found else None


def memory_sentence(study: Study) -> str:
    """What a queue and a larger batch cost, as multiples of the memory without a queue."""
    plain, queue, batch = (memory_mb(of(study, ("qqworld", *pool))) for pool in ((32, 1), (32, 4), (128, 1)))
    if plain is None or queue is None or batch is None:
        return ""
    theirs = [paper.QUEUE[pool][1] / paper.QUEUE[32, 1][1] for pool in ((32, 4), (128, 1))]
    return (
        f"At N = 32 a queue of four batches takes {queue / plain:.2f} times the memory of none (paper "
        f"{theirs[0]:.2f}), a batch of 128 {batch / plain:.2f} times (paper {theirs[1]:.2f})."
    )


def sentence(study: Study) -> str:
    """What a queue, a larger batch, corrected targets and EP do against QQ at N = 32."""
    asked = study.plan.contrast
    told = []
    for what, arm in QUESTIONS.items():
        found = contrast(of(study, arm), of(study, PLAIN), asked.planner, asked.measure)
        if found is not None:
            published = f" (paper {paper.QUEUE[arm[1:]][0] - paper.QUEUE[PLAIN[1:]][0]:+.1f})"
            theirs = published if arm[0] == "qqworld" else ""
            told.append(f"{what} changes success by {points(found)}{theirs}: {verdict(found, what, 'QQ alone')}")
    answer = f"Against QQ at N = 32 without a queue, `{asked.planner}`: {'; '.join(told)}." if told else ""
    return " ".join(part for part in (answer, memory_sentence(study), study.diverged) if part)
