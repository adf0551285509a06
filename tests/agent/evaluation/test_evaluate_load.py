"""Many episodes in one evaluation: memory stays flat and no file stays open.

`QQWORLD_LOAD=1000 python -m pytest tests/agent/evaluation/test_evaluate_load.py` runs all, by default a tenth.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from agent.episodes.settings import EpisodeSettings
from agent.evaluate import Evaluate, evaluate
from agent.evaluation.results import Results

EPISODES = int(os.environ.get("QQWORLD_LOAD", "100"))
MB = 2**20


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to look at memory and open files")
def test_memory_stays_flat_and_no_descriptor_is_left_open(tmp_path, monkeypatch):
    memory, files = [], []
    append = Results.append

    def watched(results, line):
        append(results, line)
        memory.append(resident_bytes())
        files.append(len(os.listdir("/proc/self/fd")))

    monkeypatch.setattr(Results, "append", watched)
    settings = Evaluate(
        EpisodeSettings("two-room", plan=("candidates=16", "iterations=2", "elites=4", "keep=2", "cost=sum")),
        model=("tests.analytic_world:PixelRoomWorld",),
        agents=(),
        episodes=EPISODES,
        out=tmp_path,
    )
    result = evaluate(settings, progress=False)

    assert len(memory) == EPISODES
    tenth = EPISODES // 10
    assert abs(np.mean(memory[-tenth:]) - np.mean(memory[:tenth])) < 50 * MB
    assert max(files) == min(files)
    assert result["models"]["tests.analytic_world:PixelRoomWorld"]["first_hit"]["rate"] > 0.5
