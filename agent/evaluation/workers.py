"""Episodes to run, and who runs them: this process, several processes, or a Ray cluster; the same lines from each."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import envs
from agent import planning as planners
from agent.episodes.agents import Agent, ModelAgent, RuleAgent
from agent.episodes.disturbance import Disturbance
from agent.episodes.episode import Episode, together
from agent.episodes.outcome import Outcome, provenance
from agent.episodes.realtime import RealtimeAgent, realtime
from agent.world_models import registry as world_model
from envs import OFFSET, BadInput, Pair, Task

SIMULATOR = "agent.world_models.simulator:SimulatorWorldModel"
TRIES = 3
"""How often a job is given to a worker that dies before its episodes are failures."""

Line = dict[str, Any]


def load(name: str, task: str, device: str, threads: int | None) -> world_model.WorldModel:
    """The world model called `name`; `simulator` is the true task."""
    return world_model.load(SIMULATOR if name == "simulator" else name, task, device, threads)


@dataclass(frozen=True)
class Chosen:
    """A model by the name that finds it, and the planner for it."""

    name: str
    sha256: str | None
    planner: dict[str, Any]
    """Its name and settings."""


@dataclass(frozen=True)
class Conditions:
    """Everything that decides how an episode goes, apart from who plays and from where."""

    task: str
    steps: int
    offset: int = OFFSET
    """Steps of the data policy between start and goal."""
    models: tuple[Chosen, ...] = ()
    plan_ms: float | None = None
    disturb: float | None = None
    realtime: bool = False
    device: str = "auto"
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
        self.planners = {model.name: planners.make(**model.planner) for model in conditions.models}
        self.models: dict[str, Any] = {}
        self.tasks: dict[tuple[int | None, str], Task] = {}

    def agent(self, subject: str) -> Agent:
        """A fresh agent called `subject`."""
        if subject not in self.planners:
            return RuleAgent(subject)
        if subject not in self.models:
            given = self.conditions
            self.models[subject] = load(subject, given.task, given.device, given.threads)
        kind = RealtimeAgent if self.conditions.realtime else ModelAgent
        return kind(self.models[subject], self.planners[subject], self.conditions.plan_ms)

    def task(self, agent: Agent) -> Task:
        """The task as the agent's model wants it drawn."""
        model = getattr(agent, "model", None)
        size, look = (model.image_size, model.look) if model else (None, "fast")
        if (size, look) not in self.tasks:
            self.tasks[size, look] = envs.make(self.conditions.task, size=size, look=look)
        return self.tasks[size, look]

    def look_every(self, agent: Agent) -> int:
        """Steps between two looks: nobody watches, so an agent that plans once a block need not look more often."""
        if not isinstance(agent, ModelAgent) or getattr(agent.planner, "every_step", False):
            return 1
        return agent.model.action_block

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
        disturb = Disturbance(given.disturb) if given.disturb else None
        agents = [self.agent(job.subject) for _ in job.pairs]
        outcomes = [Outcome() for _ in job.pairs]
        episodes = [
            Episode(self.task(agent), agent, *pair[:2], job.seed, number, given.steps, disturb, self.look_every(agent))
            for agent, (number, pair) in zip(agents, job.pairs, strict=True)
        ]
        if given.realtime:
            streams: Iterable = ([step] for step in realtime(episodes[0]))
        else:
            streams = together(episodes)
        for records in streams:
            for outcome, record in zip(outcomes, records, strict=True):
                outcome.add(record)
        about = {"subject": job.subject, "offset": given.offset}
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
