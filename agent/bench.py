"""How long a world model takes to see, to imagine and to plan, and how near that is to what the machine can do.

    python -m agent.bench --env pusht --model qqworld.onnx

Encode: one picture. Rollout: 300 candidates from one latent. Plan: CEM as LeWM publishes it (300 candidates, 30
iterations, horizon 5), split into phases. Picture to plan: encoding and planning with the planner that the file was
tuned for and with those that use its proposals. The GEMM limit is the time that the model's multiply-adds would take in
one large matrix product.
"""

import dataclasses
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

from agent.factory import make_planner
from agent.planning import Plan, Planner, Problem, make
from agent.world_models.file.interface import IR_VERSION, OPSET
from agent.world_models.onnx import OnnxWorldModel
from agent.world_models.ort import available_cores
from agent.world_models.registry import find
from envs.errors import BadInput, parse_command_line, run

CANDIDATES = 300
GEMM = 1024


@dataclass(frozen=True)
class Bench:
    """How long a world model takes to see, to imagine and to plan."""

    model: str
    """World-model file, or the name of a shipped one."""
    env: str = "pusht"
    """Task, to find a shipped model by its name."""
    device: str = "auto"
    """auto, cpu, cuda or tensorrt."""
    threads: int | None = None
    """Threads on the CPU (default: all cores)."""
    seconds: float = 5.0
    """Time to spend on each measurement, of which there are up to six."""
    json: bool = False
    """Print the numbers as JSON instead of a table."""


def measure(call: Callable[[], object], seconds: float, warm_up: int = 3, least: int = 5) -> np.ndarray:
    """Milliseconds of each call, for about `seconds` of calls after a few to warm up."""
    for _ in range(warm_up):
        call()
    times: list[float] = []
    ends = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < ends:
        started = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - started) / 1e6)
    return np.array(times)


def gemm_rate(threads: int, seconds: float = 1.0) -> float:
    """Multiply-adds a second in one large float32 matrix product on the CPU, at its best."""
    shape = [GEMM, GEMM]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xyz"]
    product = helper.make_graph([helper.make_node("MatMul", ["x", "y"], ["z"])], "gemm", values[:2], values[2:])
    model = helper.make_model(product, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x, y = np.random.default_rng(0).standard_normal((2, GEMM, GEMM)).astype(np.float32)
    return GEMM**3 / measure(lambda: session.run(None, {"x": x, "y": y}), seconds).min() * 1e3


def problem(model: OnnxWorldModel, context: int = 1) -> Problem:
    """Something to plan: from some random pictures to another."""
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (context + 1, model.image_size, model.image_size, 3), dtype=np.uint8)
    *seen, goal = model.encode(pictures)
    past = np.zeros((context - 1, model.action_dim * model.action_block), np.float32)
    return Problem(np.stack(seen), past, goal, np.random.default_rng(0))


def rollout_inputs(model: OnnxWorldModel, candidates: int = CANDIDATES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One latent, no past, and random plans over the whole horizon."""
    given = problem(model)
    actions = np.random.default_rng(0).uniform(-1, 1, (candidates, model.horizon, given.past_actions.shape[1]))
    return given.context[None], given.past_actions[None], actions.astype(np.float32)


def bench(model: OnnxWorldModel, threads: int, seconds: float) -> dict[str, dict[str, float]]:
    """Milliseconds (p50, p95, best) of every measurement; those that compute say how near they are to the limit."""
    picture = np.zeros((1, model.image_size, model.image_size, 3), np.uint8)
    inputs = rollout_inputs(model)
    planner, given = make("lewm", horizon=min(5, model.horizon), replan=1), problem(model)
    rate = gemm_rate(threads)
    rows = {
        "encode": _row(measure(lambda: model.encode(picture), seconds)),
        "rollout": _row(measure(lambda: model.rollout(*inputs), seconds)),
    }
    plans: list[Plan] = []
    measure(lambda: plans.append(planner(model, [given])[0]), seconds, warm_up=1, least=3)
    rows |= {f"plan: {phase}": _row(plan.ms[phase] for plan in plans[1:]) for phase in ("search", "rollout", "total")}
    for name in dict.fromkeys([model.planner.get("name"), *(["guided", "propose"] if model.proposes else [])]):
        own = make_planner(model, name)
        rows[f"picture to plan: {own.name}"] = _row(measure(_from_picture(model, own, picture), seconds))
    for name, work in (
        ("encode", model.multiply_adds("latent")),
        ("rollout", CANDIDATES * model.multiply_adds("latents_1")),
    ):
        rows[name] |= {"multiply_adds": work, "of_gemm_limit": 1e3 * work / rate / rows[name]["p50"]}
    return rows | {"gemm": {"multiply_adds_per_second": rate}}


def _from_picture(model: OnnxWorldModel, planner: Planner, picture: np.ndarray) -> Callable[[], object]:
    given = problem(model, planner.context)

    def plan() -> None:
        context = np.concatenate([given.context[:-1], model.encode(picture)])
        planner(model, [dataclasses.replace(given, context=context)])

    return plan


def _row(times: Iterable[float]) -> dict[str, float]:
    values = np.array(list(times))
    return {"p50": float(np.median(values)), "p95": float(np.percentile(values, 95)), "best": float(values.min())}


def table(rows: dict[str, dict[str, float]]) -> str:
    """The measurements for people."""
    lines = [f"{'ms':<26}{'p50':>10}{'p95':>10}{'best':>10}{'M mult-adds':>14}{'of GEMM limit':>16}"]
    for name, row in rows.items():
        if name != "gemm":
            line = f"{name:<26}{row['p50']:>10.2f}{row['p95']:>10.2f}{row['best']:>10.2f}"
            if "multiply_adds" in row:
                line += f"{row['multiply_adds'] / 1e6:>14,.1f}{row['of_gemm_limit']:>15.0%}"
            lines.append(line)
    return "\n".join([*lines, f"GEMM: {rows['gemm']['multiply_adds_per_second'] / 1e9:.1f} G multiply-adds a second"])


def main() -> None:
    settings = parse_command_line(Bench, __doc__)
    file = find(settings.model, settings.env)
    if file is None:
        raise BadInput(f"only files are measured, and {settings.model} is not a file")
    started = time.perf_counter()
    model = OnnxWorldModel(file, settings.device, settings.threads)
    loaded = time.perf_counter() - started
    rows = bench(model, settings.threads or available_cores(), settings.seconds)
    if settings.json:
        print(json.dumps({"model": model.sha256, "provider": model.provider, "load_ms": 1e3 * loaded, **rows}))
    else:
        print(f"{file}: {model.metadata.preset}, {model.provider}, loaded in {1e3 * loaded:.0f} ms")
        print(table(rows))


if __name__ == "__main__":
    run(main)
