"""Tables are made from finished cells alone, whatever is there of them, beside the paper's numbers."""

import json

import pytest

from envs.errors import BadInput
from study.cells import CELLS, PLANS, contrast, read
from study.page import main as write_page
from study.tables.__main__ import TABLES, main
from tests.study.made_up import fill


def rows(text, *words):
    """The lines of a table that hold all these words."""
    return [line for line in text.splitlines() if line.startswith("|") and all(word in line for word in words)]


def varying(config):
    """Success that differs by seed, and by objective too."""
    return 0.80 + 0.02 * (config.seed % 3) + (0.1 if config.objective == "qqworld" else 0)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_cells_says_so(name, tmp_path):
    text = TABLES[name](tmp_path).markdown()

    assert "0 of " in text
    assert "cells so far." in text
    assert "|" not in text


def test_a_table_with_some_cells_shows_them_and_counts(tmp_path):
    fill(tmp_path, "confirm", keep=lambda name: name.endswith("-s10"))

    text = TABLES["confirm"](tmp_path).markdown()

    assert "2 of 20 cells so far." in text
    assert "one training run of each says nothing about the objectives" in text
    assert rows(text, "`lewm` (primary)", "| 1 |", "| - |")


def test_table_1_has_the_spread_over_runs_and_the_papers_own_numbers(tmp_path):
    fill(tmp_path, "table-1", rate=varying)

    text = TABLES["table-1"](tmp_path).markdown()

    (ours, *_) = rows(text, "QQWorld |", "93.67 ± 3.44")
    assert ours.startswith("| QQWorld | 3 | 92.0 ± 2.0 [")
    assert rows(text, "SMWM |", "73.00 ± 4.69")
    assert rows(text, "QQWorld |", "85.08")
    assert "two-room +10.0 points [10.0, 10.0], QQWorld is better" in text
    assert "pusht +10.0 points, one training run of each says nothing about the objectives" in text
    assert "The paper has +9.3, +6.3, +2.7 and +3.0 points there" in text


def test_an_advantage_that_is_not_there_is_not_reproduced(tmp_path):
    fill(tmp_path, "table-1")

    text = TABLES["table-1"](tmp_path).markdown()

    assert "its advantage is not reproduced on any task" in text


def test_a_run_that_diverged_is_named_and_left_out(tmp_path):
    fill(tmp_path, "table-1", rate=varying)
    path = tmp_path / "table-1" / "two-room-qqworld-s0.json"
    cell = json.loads(path.read_text())
    path.write_text(json.dumps({key: cell[key] for key in ("name", "task", "settings")} | {"diverged": "at step 3"}))

    text = TABLES["table-1"](tmp_path).markdown()

    assert rows(text, "QQWorld |", "93.67 ± 3.44")[0].startswith("| QQWorld | 2 | 93.0 ± 1.4 [")
    assert "Diverged, and left out: two-room-qqworld-s0." in text


def test_table_2_averages_over_tasks_and_rescales_ep_to_as_many_latents_as_the_papers(tmp_path):
    fill(tmp_path, "table-1")
    for path in (tmp_path / "table-1").glob("*.json"):
        cell = json.loads(path.read_text())
        cell["normality"]["frames"] = 10_000
        path.write_text(json.dumps(cell))

    text = TABLES["table-2"](tmp_path).markdown()

    assert rows(text, "| QQWorld | 4 | 0.030 | 0.032 | 160.0 | 82.294 |")
    assert rows(text, "| LeWM (EP) | 4 | 0.040 | 0.038 | 240.0 | 119.909 |")
    assert "KS changes by -25.0 % (paper -15.8 %: reproduced)" in text
    assert "with equal strength" in text
    assert "a radial variance nearer to a normal's than plain QQ on 0" in text


def test_table_3_groups_the_columns_of_a_property(tmp_path):
    fill(tmp_path, "confirm-pusht")
    for path in (tmp_path / "confirm-pusht").glob("*qqworld*.json"):
        cell = json.loads(path.read_text())
        cell["probes"]["mlp"]["cos block_angle"], cell["probes"]["mlp"]["sin block_angle"] = [0.1, 0.9], [0.3, 0.8]
        path.write_text(json.dumps(cell))

    text = TABLES["table-3"](tmp_path).markdown()

    assert rows(text, "block angle | confirm-pusht | QQWorld | 6 |", "0.200 ± 0.000 | 0.850 ± 0.000")
    assert rows(text, "block angle | paper | LeWM (EP) | - | 0.176 | 0.908 | 0.008 | 0.996")
    assert "r of the MLP for the block's angle differs by -0.130 [-0.130, -0.130]" in text


def test_table_4_counts_queues_as_the_paper_does(tmp_path):
    fill(tmp_path, "batch-queue", rate=lambda config: 0.8 if config.regulariser.queue else 0.6)

    text = TABLES["table-4"](tmp_path).markdown()

    assert rows(text, "| QQWorld | 32 | 1 | 32 | 3 |", "60.0 ± 0.0", "| 65.42 | 3435 MB |")
    assert rows(text, "| QQWorld | 32 | 4 | 128 | 3 |", "80.0 ± 0.0", "| 132 MB | 81.75 | 3435 MB |")
    assert rows(text, "| QQWorld, corrected targets | 32 | 1 | 32 | 3 |")
    assert rows(text, "| LeWM (EP) | 32 | - | 32 | 3 |")
    assert "a queue of three batches changes success by +20.0 points [20.0, 20.0] (paper +18.1)" in text
    assert "takes 1.00 times the memory of none (paper 1.00), a batch of 128 1.73 times (paper 3.71)" in text


def test_dose_and_response_compares_at_equal_strength(tmp_path):
    fill(tmp_path, "dose-response", rate=varying)

    text = TABLES["strength"](tmp_path).markdown()

    assert len(rows(text, "QQWorld |", "| 3 |")) == 5
    assert "QQWorld minus LeWM (EP) at equal strength, `lewm`: +10.0 points [10.0, 10.0] over 15 pairs of runs" in text
    assert "+10.0 points [10.0, 10.0] at 1.4" in text


def test_the_confirmation_says_what_is_excluded_and_tests_pairs_within_runs_only(tmp_path):
    fill(tmp_path, "confirm", rate=lambda config: 0.80 + 0.01 * (config.seed % 2) * (config.objective == "lewm"))

    text = TABLES["confirm"](tmp_path).markdown()

    assert len(rows(text, "`lewm`")) == len(rows(text, "`cem`")) == 2
    assert len(rows(text, "| 200 |")) == 10
    assert "nan" not in text
    assert "QQWorld minus LeWM (EP) = -0.5 points [-0.9, -0.1] over 10 training runs of each" in text
    assert "LeWM (EP) is better, but a difference of 5 points is excluded" in text


def test_runs_are_paired_by_seed_and_others_are_left_out(tmp_path):
    fill(tmp_path, "confirm", rate=varying, keep=lambda name: "lewm" in name or name[-2:] in ("10", "13", "16"))
    study = read("confirm", tmp_path)

    found = contrast(study.runs("qqworld"), study.runs("lewm"), "lewm", "first_hit")

    assert found.runs == 3
    assert found.mean == pytest.approx(0.1)


def test_a_damaged_cell_is_refused_in_one_sentence(tmp_path):
    fill(tmp_path, "confirm")
    (tmp_path / "confirm" / "two-room-lewm-s10.json").write_text("{")

    with pytest.raises(BadInput, match="is not a finished cell"):
        read("confirm", tmp_path)


def test_the_command_prints_the_tables_that_are_asked_for(tmp_path, capsys):
    assert main(["--only", "table-4", "confirm", "--cells", str(tmp_path)]) == 0

    said = capsys.readouterr().out
    assert said.count("## ") == 2
    with pytest.raises(BadInput, match="unknown table 'table-9'"):
        main(["--only", "table-9"])


def test_the_page_differs_from_cells_that_came_later(tmp_path, capsys):
    fill(tmp_path, "confirm", keep=lambda name: name.endswith("0"))
    assert write_page(["--cells", str(tmp_path)]) == 0
    assert write_page(["--check", "--cells", str(tmp_path)]) == 0

    fill(tmp_path, "confirm")

    assert write_page(["--check", "--cells", str(tmp_path)]) == 1
    assert "README.md differs from the cells: run `python -m study.page`" in capsys.readouterr().err


def test_the_page_names_every_plan_and_its_question(tmp_path):
    write_page(["--cells", str(tmp_path)])

    text = (tmp_path / "README.md").read_text()
    for path in PLANS.glob("*.toml"):
        assert (f"- `{path.stem}` (0 of " in text) == (path.stem != "smoke")


def test_the_committed_page_is_made_from_the_committed_cells():
    assert write_page(["--check", "--cells", str(CELLS)]) == 0
