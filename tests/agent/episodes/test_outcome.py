"""What remains of episodes: lines that several processes may write, and percentiles of their times."""

import subprocess
import sys

import pytest

from agent.episodes.outcome import percentile, read_lines


def test_two_processes_may_append_to_one_log(tmp_path):
    path = tmp_path / "log.jsonl"
    code = "import sys; from pathlib import Path; from agent.episodes.outcome import append_line\n"
    code += "[append_line(Path(sys.argv[1]), {'who': sys.argv[2], 'n': n, 'pad': 'x' * 5000}) for n in range(200)]"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), who]) for who in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    found = [(line["who"], line["n"]) for line in read_lines(path)]
    assert sorted(found) == sorted((who, n) for who in "ab" for n in range(200))


def test_percentiles_interpolate_as_numpy_does():
    values = [3.0, 1.0, 4.0, 1.0, 5.0]
    assert percentile(values, 50) == 3.0
    assert percentile(values, 95) == pytest.approx(4.8)
    assert percentile([], 50) is None
