"""Figures are drawn from finished cells alone, small enough to commit, and know which numbers they show."""

import json

import numpy as np
import pytest

from study import readout
from study.figures.__main__ import PICTURES, main
from study.figures.base import digest, drawn_from
from study.page import main as write_page
from tests.study.made_up import fill

BY_CELLS = ("figure-1", "figure-2", "dose-response")


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """All cells that figures are drawn from, with made-up outcomes, and the figures."""
    folder = tmp_path_factory.mktemp("cells")
    fill(folder, "paper-weights")
    fill(folder, "dose-response")
    assert main(["--cells", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("name", BY_CELLS)
def test_without_cells_nothing_is_drawn_and_the_page_says_so(name, tmp_path):
    assert PICTURES[name].save(tmp_path) is None
    assert "cells so far." in PICTURES[name].markdown(tmp_path)
    assert not PICTURES[name].stale(tmp_path)


@pytest.mark.parametrize("name", [*BY_CELLS, "bias-variance"])
def test_a_figure_is_small_and_names_the_numbers_that_it_shows(name, cells):
    path = cells / f"{name}.png"

    assert 5_000 < path.stat().st_size < 150_000
    assert drawn_from(path) == digest(PICTURES[name].gather(cells)[1])
    assert f"({name}.png)" in PICTURES[name].markdown(cells)


def test_a_figure_that_shows_these_cells_is_left_alone(cells):
    before = (cells / "figure-2.png").stat().st_mtime_ns

    PICTURES["figure-2"].save(cells)

    assert (cells / "figure-2.png").stat().st_mtime_ns == before


def test_a_figure_of_other_cells_is_noticed_and_drawn_again(tmp_path, capsys):
    fill(tmp_path, "paper-weights", keep=lambda name: name.endswith("s0"))
    write_page(["--cells", str(tmp_path)])
    fill(tmp_path, "paper-weights")

    assert PICTURES["figure-1"].stale(tmp_path)
    assert write_page(["--check", "--cells", str(tmp_path)]) == 1
    assert "figure-1.png differs from the cells" in capsys.readouterr().err
    write_page(["--cells", str(tmp_path)])
    assert write_page(["--check", "--cells", str(tmp_path)]) == 0


def test_the_last_digits_of_a_number_do_not_make_another_figure():
    assert digest({"a": [1.0000000001, "x"]}) == digest({"a": (1.0, "x")})
    assert digest({"a": [1.001]}) != digest({"a": [1.0]})


def test_figure_1_says_whether_the_papers_direction_is_found(cells):
    said = PICTURES["figure-1"].markdown(cells)

    assert "(paper 0.121 and 0.157)" in said
    assert "(paper 0.123 and 0.315)" in said
    assert said.count(": reproduced") == 2


def test_figure_1_of_cells_without_qq_plots_is_drawn_without_them(tmp_path):
    fill(tmp_path, "paper-weights", keep=lambda name: name.endswith("s0"))
    for path in (tmp_path / "paper-weights").glob("*.json"):
        cell = json.loads(path.read_text())
        del cell["normality"]["mean_quantiles"]
        path.write_text(json.dumps(cell))

    assert PICTURES["figure-1"].save(tmp_path).exists()


def test_figure_2_counts_the_measurements_at_which_the_tail_is_better(cells):
    said = PICTURES["figure-2"].markdown(cells)

    assert "at 0 of 8 measurements" in said
    assert "not reproduced" in said


def test_the_law_is_said_to_leave_out_a_bias(cells):
    said = PICTURES["bias-variance"].markdown(cells)

    assert "the squared error is 0.226 (bias -0.43) and the law says 0.628" in said


def test_a_readout_of_latents_that_hold_the_position_is_exact():
    rng = np.random.default_rng(0)
    positions = rng.uniform(20, 200, (readout.EPISODES, 11, 2))
    latents = positions @ rng.normal(size=(2, 8)) + 3

    decoded = readout.decode(latents, positions)

    assert decoded == pytest.approx(positions)
    assert readout.cumulative_rmse(decoded, positions) == pytest.approx(0, abs=1e-6)


def test_the_error_so_far_is_a_root_mean_square_over_the_frames_so_far():
    decoded, positions = np.array([[3.0, 4.0], [0.0, 0.0]]), np.zeros((2, 2))

    assert readout.cumulative_rmse(decoded, positions) == pytest.approx([5.0, np.sqrt(12.5)])


def test_the_shipped_models_readout_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(readout, "EPISODES", 84)
    assert PICTURES["figure-3"].save(tmp_path) is None

    assert readout.main(["--out", str(tmp_path / "readout" / "two-room.json")]) == 0

    found = json.loads((tmp_path / "readout" / "two-room.json").read_text())
    assert set(found["models"]) == {"qqworld", "lewm"}
    assert [len(one["by_episode"]) for one in found["models"].values()] == [4, 4]
    assert np.shape(found["truth"]["80"]) == np.shape(found["models"]["lewm"]["decoded"]["80"]) == (101, 2)
    assert PICTURES["figure-3"].save(tmp_path).stat().st_size < 150_000
    assert "one training run of each, which says nothing about another run" in PICTURES["figure-3"].markdown(tmp_path)
