"""The table of what run folders measured last."""

import json

import pytest

from envs.errors import BadInput
from training.measures.last import Last, last


def test_the_last_measurement_of_each_run_is_a_row(tmp_path):
    for name, error in (("one", 0.25), ("two", 0.5)):
        (tmp_path / name).mkdir()
        lines = [{"step": step, "held_out": {"error_5": error / step, "r2_linear/x": 1.0}} for step in (1, 2)]
        (tmp_path / name / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    heading, _, one, two = last(Last((tmp_path / "one", tmp_path / "two"))).strip().splitlines()
    column = heading.split("|").index(" 5-step error ")
    assert [float(row.split("|")[column]) for row in (one, two)] == [0.125, 0.25]
    with pytest.raises(BadInput, match="no measurements"):
        last(Last((tmp_path,)))
