"""Episodes to run, and who runs them: this process, several processes, or a Ray cluster; the same lines from each."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from agent.episodes.agents import Agent
from agent.episodes.baselines import RuleAgent
from agent.episodes.disturbance import Disturbance
from agent.episodes.episode import Episode, together
from agent.episodes.outcome import Outcome, provenance
from agent.episodes.realtime import realtime
from agent.episodes.settings import EpisodeSettings
from agent.factory import load_model, make_planning_agent, make_task
from agent.world_models.base import WorldModel
from envs import BadInput, Pair, Task

TRIES = 3
"""How often a job is given to a worker that dies before its episodes are failures."""

Line = dict[str, Any]


@dataclass(frozen=True)
class Conditions:
    """Everything that decides how an episode goes, apart from who plays and from where."""

    episode: EpisodeSettings
    models: tuple[str, ...] = ()
    """The subjects that are world models; others are rules."""
    disturb: float | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Job:
    """Some pairs of one seed for one subject: a model or a rule."""

    subject: str
    seed: int
    pairs: tuple[tuple[int, Pair], ...]
    """Each with its number in the seed's list."""


class Worker:
    """Runs jobs; keeps the task and the models between them."""

    def __init__(self, conditions: Conditions):
        self.conditions = conditions
        self.models: dict[str, WorldModel] = {}
        self.tasks: dict[tuple[int, str] | None, Task] = {}

    def agent(self, subject: str) -> Agent:
        """A fresh agent called `subject`."""
        given = self.conditions
        if subject not in given.models:
            return RuleAgent(subject)
        if subject not in self.models:
            self.models[subject] = load_model(given.episode, subject, given.threads)
        return make_planning_agent(given.episode, self.models[subject])

    def task(self, model: WorldModel | None) -> Task:
        """The task as `model` wants it drawn; models that want the same share it."""
        drawn = (model.image_size, model.look) if model else None
        if drawn not in self.tasks:
            self.tasks[drawn] = make_task(self.conditions.episode.env, model)
        return self.tasks[drawn]

    def run(self, job: Job) -> list[Line]:
        """One line for every pair; an episode that raises gives a line that says so."""
        try:
            return self._run(job)
        except BadInput:
            raise
        except Exception as error:
            if len(job.pairs) > 1:  # one of them is to blame: find out which
                alone = [Job(job.subject, job.seed, (pair,)) for pair in job.pairs]
                return [line for single in alone for line in self.run(single)]
            return [failure(job, error)]

    def _run(self, job: Job) -> list[Line]:
        given = self.conditions
        agents = [self.agent(job.subject) for _ in job.pairs]
        episodes = [
            Episode(
                self.task(agent.model),
                agent,
                pair.start,
                pair.goal,
                job.seed,
                number,
                given.episode.limit,
                Disturbance(given.disturb) if given.disturb else None,
                look_every=agent.model.action_block if agent.model else 1,  # nobody watches
            )
            for agent, (number, pair) in zip(agents, job.pairs, strict=True)
        ]
        outcomes = [Outcome() for _ in episodes]
        streams = ([step] for step in realtime(episodes[0])) if given.episode.realtime else together(episodes)
        for records in streams:
            for outcome, record in zip(outcomes, records, strict=True):
                outcome.add(record)
        about = {"subject": job.subject, "offset": given.episode.offset}
        return [about | o.line(agent) for o, agent in zip(outcomes, agents, strict=True)]


def failure(job: Job, error: BaseException) -> Line:
    """The line of an episode that could not be run."""
    return {
        "subject": job.subject,
        "seed": job.seed,
        "pair": job.pairs[0][0],
        "error": f"{type(error).__name__}: {error}",
        "traceback": "".join(traceback.format_exception(error)),
        **provenance(None),
    }


def run_here(conditions: Conditions, jobs: Sequence[Job]) -> Iterator[Line]:
    """Run jobs in this process, in their order."""
    worker = Worker(conditions)
    for job in jobs:
        yield from worker.run(job)


def run_in_processes(conditions: Conditions, jobs: Sequence[Job], workers: int) -> Iterator[Line]:
    """Run jobs in worker processes; those of a process that dies are run again, at most `TRIES` times."""
    waiting, tries = list(reversed(jobs)), Counter[int]()
    while waiting:
        running: dict[Future[list[Line]], Job] = {}
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, spawn, _start_worker) as pool:
            try:
                while waiting or running:
                    while waiting and len(running) < 2 * workers:
                        job = waiting.pop()
                        running[pool.submit(_work, conditions, job)] = job
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        lines = future.result()
                        del running[future]
                        yield from lines
            except BrokenProcessPool as error:
                for job in running.values():
                    tries[id(job)] += 1
                    if tries[id(job)] < TRIES:
                        waiting.append(job)
                    else:
                        yield from (failure(Job(job.subject, job.seed, (pair,)), error) for pair in job.pairs)
            finally:
                pool.shutdown(cancel_futures=True)


def run_on_ray(conditions: Conditions, jobs: Sequence[Job]) -> Iterator[Line]:
    """Run jobs on the Ray cluster that `RAY_ADDRESS` names, or on one of this machine's; Ray repeats lost ones."""
    try:
        import ray
    except ImportError:
        raise BadInput("--ray needs Ray, which is not installed: pip install 'qqworld[cluster]'") from None

    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False, include_dashboard=False)
    remote = ray.remote(num_cpus=1, max_retries=TRIES)(_work)
    running = {remote.remote(conditions, job): job for job in jobs}
    try:
        while running:
            for done in ray.wait(list(running))[0]:
                job = running.pop(done)
                try:
                    lines = ray.get(done)
                except ray.exceptions.RayError as error:
                    lines = [failure(Job(job.subject, job.seed, (pair,)), error) for pair in job.pairs]
                yield from lines
    finally:
        for unfinished in running:
            ray.cancel(unfinished, force=True)
        if started:
            ray.shutdown()


_worker: Worker | None = None
"""Of this process; tasks and models are slow to make."""


def _work(conditions: Conditions, job: Job) -> list[Line]:
    global _worker
    if _worker is None or _worker.conditions != conditions:
        _worker = Worker(conditions)
    return _worker.run(job)


def _start_worker() -> None:
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # without a traceback; the parent's is enough
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
