"""Two thousand damaged and malicious files: each runs or is refused in one sentence; nothing crashes, hangs or swells.

    python -m tests.agent.world_models.test_model_file_fuzz 2000      the same by hand, with any number of files

Every second file carries a correct checksum, as an attacker's would.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from agent.factory import make_planner
from agent.planning.base import Problem
from agent.world_models.onnx import OnnxWorldModel
from envs.errors import BadInput
from tests import tiny
from tests.agent.world_models.edits import before_1_2
from tests.agent.world_models.mutations import MUTATIONS

FILES = 2000
MAX_SECONDS = 10
QUICK = 9000
"""Rollouts of a plan that is tried."""


def test_two_thousand_mutated_files_run_or_are_refused():
    done = subprocess.run([sys.executable, "-m", __name__, str(FILES)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{done.stdout[-300:]}\n{done.stderr[-3000:]}"
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["ran"] + summary["refused"] == FILES
    assert summary["ran"] > FILES / 20  # the mutations are not all coarse
    assert summary["refused"] > FILES / 2
    assert summary["peak_mb"] < 1000
    assert summary["slowest_s"] < MAX_SECONDS


def main(files: int) -> None:
    """Mutate, load and run; prints the number of each file before it is tried, and a summary at the end."""
    good = tiny.content(horizon=2, components=2, **tiny.NETWORK | {"history": 2, "depth": 1})
    either = [good, before_1_2(good)]
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.onnx"
        for number in range(files):
            print(number, flush=True)
            rng = np.random.default_rng([7, number])
            path.write_bytes(MUTATIONS[number % len(MUTATIONS)](either[number // len(MUTATIONS) % 2], rng))
            started = time.process_time()
            try:
                use(OnnxWorldModel(path, device="cpu", threads=1), rng)
                outcomes["ran"] += 1
            except BadInput as refused:
                outcomes["refused" if str(refused).isprintable() and len(str(refused)) < 500 else "rambling"] += 1
            slowest = max(slowest, time.process_time() - started)
    peak = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) // 1024  # type: ignore[index]
    print(json.dumps({"ran": outcomes["ran"], "refused": outcomes["refused"], "peak_mb": peak, "slowest_s": slowest}))


def use(model: OnnxWorldModel, rng: np.random.Generator) -> None:
    """Call everything that a planner would call, and the planner that the file asks for if it is quick."""
    seen = model.encode(rng.integers(0, 256, (2, model.image_size, model.image_size, 3), dtype=np.uint8))
    block = model.action_dim * model.action_block
    for length in range(1, model.history + 1):
        for contexts, plans in ((1, 1), (1, 3), (3, 3)):
            context = rng.standard_normal((contexts, length, model.latent_size))
            past, actions = (
                rng.uniform(-1, 1, shape) for shape in ((contexts, length - 1, block), (plans, model.horizon, block))
            )
            for blocks in (model.horizon, 1):
                model.rollout(context, past, actions[:, :blocks])
    if model.proposes:
        start, goal = rng.standard_normal((2, 3, model.latent_size))
        model.propose(start, goal, rng.uniform(1, 20, (3, 1)))
    planner = make_planner(model)
    if model.metadata.rollouts <= QUICK:
        plan = planner(model, [Problem(seen[:1], np.empty((0, block)), seen[1], rng)])[0]
        assert np.isfinite(plan.actions).all()


if __name__ == "__main__":
    main(int(sys.argv[1]))
