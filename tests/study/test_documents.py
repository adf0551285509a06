"""The documents' tables are what the committed data says."""

import json

import pytest

import envs
from agent.evaluation.tables import read
from envs import recipes
from envs.errors import BadInput
from study import document_blocks, documents
from study.document_blocks import BLOCKS
from training.objectives import OBJECTIVES


def rows_of(block: str) -> list[list[str]]:
    """The cells of a Markdown table, without heading and rule."""
    lines = [line for line in block.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_committed_documents_hold_what_the_data_says():
    differing = [path for path in documents.DOCUMENTS if documents.fill(path.read_text(), BLOCKS) != path.read_text()]

    assert differing == [], "run `make docs`"


def test_every_block_stands_in_one_document():
    texts = [path.read_text() for path in documents.DOCUMENTS]

    assert {name: sum(text.count(f"<!-- {name} -->") for text in texts) for name in BLOCKS} == dict.fromkeys(BLOCKS, 1)


def test_a_document_that_differs_is_named_with_status_one_and_written_without_check(tmp_path, monkeypatch, capsys):
    page = tmp_path / "PAGE.md"
    page.write_text("before\n<!-- targets -->\nby hand\n<!-- /targets -->\nafter\n")
    monkeypatch.setattr(documents, "DOCUMENTS", (page,))

    assert documents.main(["--check"]) == 1
    assert "PAGE.md differs from the data" in capsys.readouterr().err
    assert "by hand" in page.read_text()

    assert documents.main([]) == 0
    assert page.read_text() == f"before\n<!-- targets -->\n\n{BLOCKS['targets']()}\n\n<!-- /targets -->\nafter\n"
    assert documents.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<!-- one -->\n", "not followed by its end"),
        ("<!-- one -->\n<!-- /two -->\n", "not followed by its end"),
        ("<!-- /one -->\n<!-- one -->\n", "not followed by its end"),
        ("<!-- two -->\n<!-- /two -->\n", "no block called two"),
    ],
)
def test_markers_that_do_not_pair_up_are_refused_in_one_sentence(text, sentence):
    with pytest.raises(BadInput, match=sentence):
        documents.fill(text, {"one": lambda: "1"})


def test_the_readmes_table_has_two_models_of_every_task_with_its_files_planner():
    rows = rows_of(document_blocks.results())

    assert [(row[0], row[2]) for row in rows] == [(task, model) for task in envs.TASKS for model in ("qqworld", "lewm")]
    assert [row[1] for row in rows[::2]] == [recipes.planner(task)["name"] for task in envs.TASKS]
    pusht = json.loads((document_blocks.RESULTS / "pusht/guided-25/summary.json").read_text())["models"]
    assert rows[2][3].startswith(f"{100 * next(iter(pusht.values()))['first_hit']['rate']:.0f}% [")
    assert all(row[6].endswith("%") for row in rows)


def test_minutes_are_those_of_the_recipe_and_a_missing_one_leaves_the_sum_open(monkeypatch):
    known = {"data": 1, "encoder": 2.5, "predictor": 3, "proposals": 4}
    found = {"two-room": known, "pusht": {"data": 7}}
    monkeypatch.setattr(recipes, "minutes", lambda task: found.get(task, {}))

    two_room, pusht, reacher, _ = rows_of(document_blocks.minutes())

    assert two_room[1:6] == ["1", "2.5", "3", "4", "10 min"]
    assert pusht[1:6] == ["7", "-", "-", "-", "-"]
    assert reacher[1:6] == ["-"] * 5
    assert two_room[6].endswith("%]")


def test_every_evaluation_and_every_comparison_is_a_row():
    summaries = read(document_blocks.RESULTS)

    assert len(rows_of(document_blocks.summaries())) == sum(len(one["models"]) for one in summaries)
    assert len(rows_of(document_blocks.comparisons())) == sum(len(one["comparisons"]) for one in summaries)


def test_every_objective_is_explained_and_its_strength_is_that_of_mean_qq():
    rows = {row[0].strip("`"): row for row in rows_of(document_blocks.objectives_in_words())}

    assert list(rows) == list(OBJECTIVES)
    assert rows["qqworld"][3] == "3.5"
    assert rows["lewm"][3] == "5.56"  # 0.09 * 0.4824 * 128
    assert rows["vicreg"][3] == "-"
    assert rows["smwm"][2] == "inverse 0.1 / 30 / 5 / 1"
