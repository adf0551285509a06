"""The network that is shipped learns a real task with its recipe: Two-Room, from the collector's file, in 300 steps."""

import json
import subprocess
import sys

import torch

torch.set_num_threads(1)  # the test workers already share the cores


def test_three_hundred_steps_halve_the_held_out_five_step_error_without_collapse(tmp_path):
    data, out = tmp_path / "two-room.h5", tmp_path / "run"
    collect = f"-m envs.collect --env two-room --episodes 60 --out {data} --seed 0 --workers 1"
    train = (
        f"-m training.train --env two-room --data {data} --out {out} --phases encoder "
        "--steps 300 --batch 16 --eval-every 300 --threads 1"
    )
    for command in (collect, train):
        subprocess.run([sys.executable, *command.split()], check=True, capture_output=True)

    lines = [json.loads(line) for line in (out / "encoder" / "metrics.jsonl").open()]
    start, end = (line["held_out"] for line in lines if "held_out" in line)
    assert end["error_5"] < 0.5 * start["error_5"]
    assert end["error_5_to_copy"] < 0.5
    assert end["std_mean"] > 0.5
    assert end["effective_rank"] > 4
    assert min(end["r2_linear/agent_x"], end["r2_linear/agent_y"]) > 0.9
