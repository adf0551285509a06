"""The bench and the comparison run as documented, with tiny settings."""

import json
import shlex
import subprocess
import sys

import torch

from tests.moving_dot import write
from training.measures import compare

torch.set_num_threads(1)  # the test workers already share the cores

TINY = "--latent 16 --image-size 32 --channels 8 16 --stem 4 --hidden 32 --width 32 --depth 1 --heads 2 --mlp 32"


def test_the_bench_reports_where_the_time_and_the_memory_go(tmp_path):
    out = tmp_path / "bench.md"
    options = "--presets compact --batches 4 --repeats 1 --memory-batches 4 --queues 0 1"
    command = f"-m training.measures.step_time {options} --out {out}"
    subprocess.run([sys.executable, *shlex.split(command)], check=True, stdout=subprocess.DEVNULL)
    text = out.read_text()
    for words in ("training frames per second", "of which the sort", "matrix-product rate", "| 4 |"):
        assert words in text


def test_the_bench_wants_a_batch_for_every_preset():
    command = [sys.executable, *shlex.split("-m training.measures.step_time --presets compact --batches 4 8")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: --batches needs one number for each of --presets\n"


def test_the_comparison_trains_each_objective_once_and_tabulates_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(compare, "SLICES", 64)
    monkeypatch.setattr("training.measures.probes.STEPS", 3)
    data = write(tmp_path / "dot.h5", side=32)
    command = shlex.split(
        f"--env dot --data {data} --out {tmp_path / 'all'} --steps 3 --batch 8 --objectives qqworld lewm smwm {TINY}"
    )
    assert compare.main(command) == 0
    table = json.loads((tmp_path / "all" / "table.json").read_text())
    assert list(table) == ["qqworld", "lewm", "smwm"]
    assert {"error_5", "qq_rmse", "ks", "ep", "tail_rate"} <= table["qqworld"].keys()
    assert (tmp_path / "all" / "compare.png").read_bytes().startswith(b"\x89PNG")
    first = capsys.readouterr().out
    assert "| objective | 1-step error |" in first

    before = (tmp_path / "all" / "lewm" / "checkpoint.safetensors").stat().st_mtime_ns
    assert compare.main(command) == 0
    assert capsys.readouterr().out == first
    assert (tmp_path / "all" / "lewm" / "checkpoint.safetensors").stat().st_mtime_ns == before
