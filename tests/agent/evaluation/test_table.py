"""Tables from what evaluations hold."""

import json

import pytest

from agent.evaluation import tables as table
from envs import BadInput


def rates(rate: float) -> dict:
    return {"rate": rate, "low": rate - 0.1, "high": rate + 0.1, "n": 20, "mean": rate, "std": 0.05}


def summary(task: str, offset: int, realtime: bool = False) -> dict:
    result = {"first_hit": rates(0.8), "final": rates(0.5), "plan_ms": {"p50": 12.4, "p95": 20.6}}
    planner = {"name": "cem", "candidates": 100}
    return {
        "task": task,
        "models": {"pretrained/x/qqworld.onnx": result, "lewm.onnx": result},
        "agents": {"random": {"first_hit": rates(0.25)}},
        "comparisons": [
            {"first": "pretrained/x/qqworld.onnx", "second": "lewm.onnx", "only_first": 3, "only_second": 1, "p": 0.625}
        ],
        "configuration": {
            "offset": offset,
            "realtime": realtime,
            "models": {name: {"planner": planner} for name in ("pretrained/x/qqworld.onnx", "lewm.onnx")},
        },
    }


@pytest.fixture
def folder(tmp_path):
    for name, content in {
        "b": summary("pusht", 50),
        "a": summary("pusht", 25, realtime=True),
        "z": summary("two-room", 25),
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(json.dumps(content))
    return tmp_path


def test_every_model_of_every_evaluation_is_a_row_in_the_order_of_the_tasks(folder):
    heading, *rows = table.rows(table.read(folder))
    assert [row[:4] for row in rows[::2]] == [
        ["two-room", "25", "cem", "qqworld"],
        ["pusht", "25", "cem, real time", "qqworld"],
        ["pusht", "50", "cem", "qqworld"],
    ]
    assert rows[1][3] == "lewm"
    assert rows[0][4:] == ["80% [70%, 90%]", "80.0 ± 5.0", "50% [40%, 60%]", "12 / 21", "25.0%", "-"]
    assert len(heading) == len(rows[0])


def test_paired_comparisons_are_a_table_of_their_own(folder):
    _, *rows = table.comparisons(table.read(folder))
    assert rows[0] == ["two-room", "25", "cem", "qqworld", "lewm", "3", "1", "0.625"]


def test_a_folder_without_evaluations_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(BadInput, match=r"no summary\.json"):
        table.read(tmp_path)
    (tmp_path / "summary.json").write_text('{"task": "chess"}')
    with pytest.raises(BadInput, match="not one of an evaluation"):
        table.read(tmp_path)
