"""Measure world models and agents on start and goal pairs that no dataset contains.

    python -m agent.evaluate --env pusht --model qqworld.onnx --episodes 50 --seeds 0 1 2 3 4 5 --workers 2

Writes a folder with every episode (episodes.jsonl), the rates (summary.json, summary.md) and a page to look at
(report.html). Stopped at any moment, the same command goes on.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

import envs
from agent.episodes.baselines import RULES
from agent.episodes.settings import EpisodeSettings, above_zero, at_least
from agent.evaluation import report, summary
from agent.evaluation.results import Key, Results
from agent.evaluation.statistics import Rate
from agent.evaluation.workers import Conditions, Job, run_here, run_in_processes, run_on_ray
from agent.factory import load_model, make_planning_agent
from agent.planning import settings_of
from agent.world_models.registry import find
from envs.errors import BadInput, parse_command_line, run


@dataclass(frozen=True)
class Evaluate:
    """Measure world models and agents on start and goal pairs that no dataset contains."""

    episode: EpisodeSettings
    model: tuple[str, ...] = ()
    """World models: files, names under pretrained/TASK/, package.module:Class, or simulator (the true task)."""
    agents: tuple[str, ...] = ("random", "zero")
    """Rules to run on the same pairs: random, zero, expert (the data policy, which ignores the goal)."""
    episodes: int = 50
    """Pairs of every seed."""
    seeds: tuple[int, ...] = (0,)
    """Seeds of the pairs; settings are chosen on 100-199 and reported on 0-5."""
    workers: int = 1
    """Processes that run episodes."""
    out: Path | None = None
    """Folder for the results (default: results/TASK)."""
    disturb: float | None = None
    """Push the goal object now and then, by this many times what counts as moved."""
    batch: int = 1
    """Episodes whose plans share a rollout call; more may be faster on a GPU."""
    threads: int | None = None
    """Threads of one worker's model (default: the cores divided by the workers)."""
    ray: bool = False
    """Run on Ray: the cluster that RAY_ADDRESS names, where models have the same paths, or this machine."""

    def check(self) -> None:
        """Refuse what makes no sense."""
        self.episode.check()
        at_least(1, episodes=self.episodes, workers=self.workers, batch=self.batch)
        above_zero(disturb=self.disturb, threads=self.threads)
        if not self.seeds or min(self.seeds) < 0:
            raise BadInput(f"--seeds must be 0 or more, got {' '.join(map(str, self.seeds)) or 'none'}")
        if self.episode.realtime and self.batch > 1:
            raise BadInput("--realtime runs one episode at a time: leave --batch out")
        for what, names in (("seeds", self.seeds), ("model", self.model), ("agents", self.agents)):
            if len(set(names)) < len(names):
                raise BadInput(f"--{what} names something twice: {' '.join(map(str, names))}")
        if unknown := [name for name in self.agents if name not in RULES]:
            raise BadInput(f"unknown agent '{unknown[0]}': choose among {', '.join(RULES)}")
        if not self.model and not self.agents:
            raise BadInput("there is nothing to measure: name a --model or some --agents")

    @property
    def folder(self) -> Path:
        """Where the results go."""
        return self.out or Path("results") / self.episode.env

    def conditions(self) -> Conditions:
        """How episodes are run."""
        threads = self.threads or max(1, (os.cpu_count() or 1) // self.workers)
        return Conditions(self.episode, self.model, self.disturb, threads)

    def configuration(self) -> dict[str, Any]:
        """What decides the outcome of an episode, as JSON; results of different configurations do not mix."""
        how, models = self.episode, {}
        for name in self.model:
            agent = make_planning_agent(how, load_model(how, name, self.threads))
            models[name] = {"sha256": agent.model.sha256, "planner": settings_of(agent.planner)}
        return {
            "task": how.env,
            "offset": how.offset,
            "steps": how.limit,
            "plan_ms": how.plan_ms,
            "disturb": self.disturb,
            "realtime": how.realtime,
            "models": models,
        }


def evaluate(settings: Evaluate, progress: bool = True) -> dict[str, Any]:
    """Run what the results folder lacks, write the summaries there and return the content of `summary.json`."""
    configuration, results, lines = run_episodes(settings, progress)
    task = envs.make(settings.episode.env)
    result = summary.summarise(task.name, settings.model, settings.agents, settings.seeds, lines)
    result |= {"configuration": configuration, "rule": task.rule, "unit": task.unit}
    results.write("summary.json", json.dumps(result, indent=1))
    results.write("summary.md", summary.markdown(result))
    results.write("report.html", report.page(task, result, lines, results.whole(report.worth_watching(result, lines))))
    return result


def run_episodes(settings: Evaluate, progress: bool = True) -> tuple[dict[str, Any], Results, list[dict[str, Any]]]:
    """Run what the results folder lacks; the configuration, the folder, and a line for each episode asked for."""
    settings.check()
    configuration = settings.configuration()
    results = Results(settings.folder, configuration)
    known = results.lines()
    wanted, jobs = _plan_work(settings, {key for key, line in known.items() if not line.get("error")})
    _work(settings, jobs, wanted, results, progress)
    return configuration, results, [line for key, line in sorted(results.lines().items()) if key in wanted]


def _plan_work(settings: Evaluate, finished: set[Key]) -> tuple[set[Key], list[Job]]:
    """The episodes that were asked for, and those of them left to run as jobs, models first."""
    how = settings.episode
    pairs = {seed: envs.remembered(how.env, seed, settings.episodes, how.offset) for seed in settings.seeds}
    wanted: set[Key] = set()
    jobs: list[Job] = []
    for subject in (*settings.model, *settings.agents):
        size = settings.batch if subject in settings.model else 1
        for seed in settings.seeds:
            wanted |= {(subject, seed, number) for number in range(settings.episodes)}
            left = [(n, pair) for n, pair in enumerate(pairs[seed]) if (subject, seed, n) not in finished]
            batches = (tuple(left[first : first + size]) for first in range(0, len(left), size))
            jobs += [Job(subject, seed, batch) for batch in batches]
    return wanted, jobs


def _work(settings: Evaluate, jobs: Sequence[Job], wanted: set[Key], results: Results, progress: bool) -> None:
    """Run jobs and keep their lines, under a bar that says how it goes: `PushT 37/100 86% [71,94] 41 ms/plan`."""
    conditions = settings.conditions()
    if settings.ray:
        lines = run_on_ray(conditions, jobs)
    elif settings.workers > 1:
        lines = run_in_processes(conditions, jobs, settings.workers)
    else:
        lines = run_here(conditions, jobs)
    successes, plan_ms = defaultdict(list), defaultdict(list)
    for (subject, *_), line in results.lines().items():
        successes[subject].append(bool(line.get("success")))
    with tqdm(
        total=len(wanted),
        initial=len(wanted) - sum(len(job.pairs) for job in jobs),
        desc=envs.TASKS[settings.episode.env].split(":")[1],
        bar_format="{desc} {n_fmt}/{total_fmt}{postfix} [{elapsed}<{remaining}]",
        mininterval=0.5 if sys.stderr.isatty() else 30,
        disable=not progress,
    ) as bar:
        for line in lines:
            results.append(line)
            subject = line["subject"]
            successes[subject].append(bool(line.get("success")))
            if line.get("plan_ms_p50") is not None:
                plan_ms[subject].append(line["plan_ms_p50"])
            bar.set_postfix_str(_running(subject, successes[subject], plan_ms[subject]), refresh=False)
            bar.update()


def _running(subject: str, successes: Sequence[bool], plan_ms: Sequence[float]) -> str:
    rate = Rate.of(successes)
    speed = f" {sum(plan_ms) / len(plan_ms):.0f} ms/plan" if plan_ms else ""
    return f"{subject} {100 * rate.rate:.0f}% [{100 * rate.low:.0f},{100 * rate.high:.0f}]{speed}"


def main() -> int:
    settings = parse_command_line(Evaluate, __doc__)
    settings.check()
    for name in settings.model:
        print(f"{settings.episode.env}: {find(name, settings.episode.env) or name}", flush=True)
    try:
        result = evaluate(settings)
    except KeyboardInterrupt:
        print(f"stopped: run the same command again to go on with {settings.folder}", file=sys.stderr)
        return 130
    print(summary.markdown(result))
    print(f"Episodes, summary and report: {settings.folder}")
    return 1 if result["failed"] else 0


def command() -> None:
    """The installed program."""
    run(main)


if __name__ == "__main__":
    command()
