"""The same rollout as the exported file and as plain torch, side by side.

    python -m export.rollout_speed

Random weights, 300 candidates, horizon 5, from one frame, on the CPU. Plain torch runs one predictor call a step over
the whole window, 12 tokens a candidate. The two take turns, so that a busy machine slows both.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from agent.bench import CANDIDATES, gemm_rate, measure, rollout_inputs
from agent.world_models.onnx import OnnxWorldModel
from agent.world_models.ort import available_cores
from envs.errors import parse_command_line, run
from export.package import package
from export.source import Source
from export.work import naive_multiply_adds
from models import PRESETS, build, settings

HORIZON = 5


@dataclass(frozen=True)
class Speed:
    """The same rollout as the exported file and as plain torch, side by side."""

    presets: tuple[str, ...] = tuple(PRESETS)
    """Networks to measure."""
    threads: int | None = None
    """Threads for both (default: all cores)."""
    rounds: int = 10
    """Times that each is run, in turn."""


def compare(preset: str, threads: int, rounds: int) -> str:
    """One line of results for one preset."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    network = build(preset, action_dim=2).eval()
    for parameter in network.parameters():  # gates begin closed and all alike, which would leave less to compute
        parameter.data += 0.02 * torch.randn_like(parameter)
    source = Source(network, "pusht", "fast", preset, settings(preset), "none", "none", 0, 0, {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(package(source, HORIZON, np.float32, {}, "MIT"))
        file = OnnxWorldModel(path, device="cpu", threads=threads)
        inputs = rollout_inputs(file)
    tensors = [torch.from_numpy(array) for array in inputs]
    rate = gemm_rate(threads)
    times: dict[str, list[float]] = {"onnx": [], "torch": []}
    with torch.no_grad():
        for _ in range(rounds):
            times["onnx"].append(measure(lambda: file.rollout(*inputs), 0, warm_up=1, least=1)[0])
            times["torch"].append(measure(lambda: network.rollout(*tensors), 0, warm_up=1, least=1)[0])
    naive, ours = naive_multiply_adds(network, HORIZON), file.multiply_adds("latents_1")
    onnx_ms, torch_ms = (float(np.median(times[name])) for name in ("onnx", "torch"))
    limit = 1e3 * CANDIDATES / rate
    return (
        f"{preset:<9}{torch_ms:>10.1f}{onnx_ms:>10.1f}{torch_ms / onnx_ms:>9.2f}x"
        f"{naive / 1e6:>12.1f}{ours / 1e6:>10.1f}{limit * naive / torch_ms:>12.0%}{limit * naive / onnx_ms:>12.0%}"
        f"{limit * ours / onnx_ms:>12.0%}"
    )


def main() -> None:
    chosen = parse_command_line(Speed, __doc__)
    print(
        f"{'':<9}{'torch ms':>10}{'onnx ms':>10}{'faster':>10}{'naive M':>12}{'ours M':>10}"
        f"{'torch/GEMM':>12}{'onnx/GEMM':>12}{'its own':>12}"
    )
    for preset in chosen.presets:
        print(compare(preset, chosen.threads or available_cores(), chosen.rounds))


if __name__ == "__main__":
    run(main)
