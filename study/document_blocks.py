"""The generated blocks of the documents: tables from committed results, recipes and run folders, and from formulas."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import envs
from agent.evaluation import tables
from agent.evaluation.summary import lines_of, rate
from agent.world_models.registry import PRETRAINED
from envs import OFFSET, recipes
from models.run_folder import ENCODER, last_measured, read_config
from study.reproduce import OBJECTIVES as SHIPPED
from training import objectives
from training.config import Config
from training.measures.compare import table
from training.objectives.targets import coefficients, corrected_quantiles, minimiser_moments, quantiles
from training.phases.pipeline import defaults

DOCS = Path(__file__).parent.parent / "docs"
RESULTS, FRESH, REALTIME = DOCS / "results", DOCS / "results-fresh", DOCS / "results-realtime"
STEPS = ("data", "encoder", "predictor", "proposals")
"""Sections of a recipe whose commands take minutes."""
BATCH = 128
"""Batch that the published weights are for."""
POOLS = (32, 64, 128, 256, 512)
LEVEL = 0.05
IN_WORDS = {
    "qqworld": (
        "squared distance of each projected latent to the Gaussian quantile of its rank, mean over the batch",
        "Yu, Hu and Xu, arXiv 2607.28415",
    ),
    "lewm": (
        "Epps-Pulley: N times the squared distance between the characteristic functions of a projection and of a "
        "Gaussian, integrated with weight exp(-t²/2) (SIGReg)",
        "LeWM, arXiv 2603.19312",
    ),
    "vicreg": (
        "shortfall of each dimension's standard deviation below 1, and squared covariances",
        "VICReg, arXiv 2105.04906; weights as PLDM",
    ),
    "pldm": (
        "VICReg, the same shortfall over time, and squared steps between successive latents",
        "PLDM as stable-worldmodel compares it with LeWM",
    ),
    "visreg": (
        "squared error of each dimension's scale and centre, and sliced Wasserstein distance of the shape",
        "VISReg, arXiv 2606.02572",
    ),
    "sub-jepa": ("Epps-Pulley inside fixed random subspaces", "Sub-JEPA, arXiv 2605.09241"),
    "sd-jepa": (
        "Epps-Pulley on most coordinates, and a cosine triplet over time on the first few",
        "SD-JEPA, arXiv 2605.31111",
    ),
    "smwm": ("error of a network that names the actions between two successive latents", "SMWM, arXiv 2606.20104"),
    "none": ("nothing: it shows the collapse that the others prevent", "-"),
}
"""What each objective adds to the prediction error, and who published it."""

Rows = list[list[str]]


def results() -> str:
    """Both models of every task with the planner that their file keeps, goals 25 steps away."""
    rows = [["task", "planner", "model", "first hit", "last step", "plan p95", "random agent"]]
    for task in envs.TASKS:
        summary = default_planner(task)
        planner = recipes.planner(task)["name"]
        chance = tables.percent(rules_on(task)["random"])
        for model, result in summary["models"].items():
            hits = [rate(result[when]) for when in ("first_hit", "final")]
            rows.append([task, planner, Path(model).stem, *hits, f"{result['plan_ms']['p95']:.0f} ms", chance])
    return joined(rows)


def minutes() -> str:
    """What each step of a recipe takes on two cores, and what comes of it."""
    rows = [["task", "collect", *STEPS[1:], "together", "first hit to expect"]]
    for task in envs.TASKS:
        known = recipes.minutes(task)
        parts = [f"{known[step]:.3g}" if step in known else "-" for step in STEPS]
        together = "-" if "-" in parts else f"{sum(known[step] for step in STEPS):.0f} min"
        hit = next(iter(default_planner(task)["models"].values()))["first_hit"]
        rows.append([task, *parts, together, rate(hit)])
    return joined(rows)


def default_planner(task: str) -> dict[str, Any]:
    """The summary of a task's shipped models with the planner of its recipe, qqworld first."""
    (summary,) = tables.read(RESULTS / task / f"{recipes.planner(task)['name']}-{OFFSET}")
    return summary


def rules_on(task: str) -> dict[str, Any]:
    """The random and the zero agent on a task's near pairs, which one planner's evaluation ran beside it."""
    near = [summary for summary in tables.read(RESULTS / task) if summary["configuration"]["offset"] == OFFSET]
    return next(summary["agents"] for summary in near if summary["agents"])


def summaries() -> str:
    """Every planner, distance and model: what `python -m agent.evaluation.tables docs/results` prints first."""
    return joined(tables.rows(tables.read(RESULTS)))


def comparisons() -> str:
    """The paired comparisons: what that command prints next, and how many of them are below `LEVEL`."""
    found = tables.read(RESULTS)
    p = [one["p"] for summary in found for one in summary["comparisons"]]
    below = sum(value < LEVEL for value in p)
    said = f"{below} of {len(p)} tests have p below {LEVEL}; the smallest p is {min(p):.3g}."
    return f"{said}\n\n{joined(tables.comparisons(found))}"


def fresh() -> str:
    """Pairs of seeds that decided nothing."""
    found = tables.read(FRESH)
    return joined(columns(tables.rows(found), "task", "planner", "model", "first hit", "final", "plan ms p50 / p95"))


def realtime() -> str:
    """Success and late plans when the world does not wait."""
    found = tables.read(REALTIME)
    rows = columns(tables.rows(found), "task", "planner", "model", "first hit", "final", "plan ms p50 / p95")
    late = [f"{one['misses']} of {one['plans']}" for summary in found for one in summary["models"].values()]
    return joined([[*row, cell] for row, cell in zip(rows, ["late plans", *late], strict=True)])


def latents() -> str:
    """What the shipped encoders measured last: as `python -m training.measures.last` prints it."""
    names = [(task, name) for task in envs.TASKS for name in SHIPPED]
    return table({f"{task}, {name}": last_measured(encoder_run(task, name)) for task, name in names}, what="encoder")


def weights() -> str:
    """How strongly the shipped encoders were regularised."""
    rows = [["task", *(f"{name}: {what}" for name in SHIPPED for what in ("weight", "strength"))]]
    for task in envs.TASKS:
        configs = [read_config(encoder_run(task, name)) for name in SHIPPED]
        rows.append([task, *(cell for config in configs for cell in weight_and_strength(config))])
    return joined(rows)


def weight_and_strength(config: dict[str, Any]) -> tuple[str, str]:
    """Of the run that `config` describes."""
    weight = config["regulariser"]["weight"]
    return f"{weight:.3g}", strength(config["objective"], weight, config["batch"])


def encoder_run(task: str, name: str) -> Path:
    """The run folder in which a shipped model's encoder was trained."""
    folder = PRETRAINED / task / name
    return folder / ENCODER if (folder / ENCODER).is_dir() else folder


def objectives_in_words() -> str:
    """What every objective is, with its published weights."""
    order = " / ".join(envs.TASKS)
    rows = [["objective", "adds to the prediction error", f"weights ({order})", "strength", "source"]]
    for name in objectives.OBJECTIVES:
        made = [objectives.make(name, task).weights for task in envs.TASKS]
        first = next(iter(made[0].values()), 0.0)
        words, source = IN_WORDS[name]
        rows.append([f"`{name}`", words, by_task(made), strength(name, first, BATCH), source])
    return joined(rows)


def by_task(made: Sequence[dict[str, float]]) -> str:
    """Named weights, with one number for all tasks or one for each."""
    said = []
    for term in made[0]:
        numbers = [f"{weights[term]:g}" for weights in made]
        said.append(f"{term} {' / '.join(numbers if len(set(numbers)) > 1 else numbers[:1])}")
    return ", ".join(said) or "-"


def strength(name: str, weight: float, batch: int) -> str:
    """The weight of mean-QQ that pulls as strongly; "-" for objectives that have none."""
    kind = objectives.kind_of(name)
    return "-" if kind.unit_force is None else f"{weight / kind.weight_of(1.0, batch):.3g}"


def recipe_weights() -> str:
    """The strength that each recipe asks for, and the weights it gives."""
    rows = [["task", "strength", *(f"weight of {name}" for name in SHIPPED)]]
    for task in envs.TASKS:
        configs = [defaults("encoder", Config(task, objective=name)) for name in SHIPPED]
        given = [next(iter(config.make_objective().weights.values())) for config in configs]
        rows.append([task, f"{configs[0].regulariser.strength:g}", *(f"{weight:.3g}" for weight in given)])
    return joined(rows)


def targets() -> str:
    """The distribution that ranks among M pull to, with plain and with corrected targets."""
    rows = [["M", "plain: scale", "kurtosis", "a", "b", "corrected: scale", "kurtosis"]]
    for pool in POOLS:
        plain, corrected = (minimiser_moments(kind(pool)) for kind in (quantiles, corrected_quantiles))
        numbers = [f"{number:.4f}" for number in coefficients(pool)]
        rows.append([str(pool), *moments(plain), *numbers, *moments(corrected)])
    return joined(rows)


def moments(found: tuple[float, float]) -> tuple[str, str]:
    scale, kurtosis = found
    return f"{scale:.3f}", f"{kurtosis:.2f}"


def columns(rows: Rows, *names: str) -> Rows:
    """The columns with these headings, in this order."""
    chosen = [rows[0].index(name) for name in names]
    return [[row[column] for column in chosen] for row in rows]


def joined(rows: Rows) -> str:
    """Rows as a Markdown table."""
    return "\n".join(lines_of(rows))


BLOCKS: dict[str, Callable[[], str]] = {
    "results": results,
    "minutes": minutes,
    "summaries": summaries,
    "comparisons": comparisons,
    "fresh": fresh,
    "realtime": realtime,
    "latents": latents,
    "weights": weights,
    "objectives": objectives_in_words,
    "recipe-weights": recipe_weights,
    "targets": targets,
}
"""Name of a block to what makes it."""
