"""The planner that a file keeps: the recipe's where the network can follow it, and what flags make of it."""

import pytest

from agent.world_models.onnx import OnnxWorldModel
from envs import recipes
from envs.errors import BadInput
from export.__main__ import Export, export
from tests import tiny


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """Writes what a recipe of Two-Room says about the planner."""
    monkeypatch.setattr(recipes, "FOLDER", tmp_path)

    def write(text: str) -> None:
        others = "".join(f"[{name}]\n" for name in recipes.SECTIONS if name != "planner")
        (tmp_path / "two-room.toml").write_text(f"{others}[planner]\n{text}\n")

    write('name = "guided"\nsamples = 16')
    return write


@pytest.mark.parametrize(
    ("made", "flags", "kept"),
    [
        ({"preset": "compact", "components": 2}, {}, {"name": "guided", "samples": 16}),
        ({"preset": "compact"}, {}, {}),  # without proposals it cannot be followed
        ({"preset": "compact-transformer", "components": 2}, {}, {}),  # the recipe is of another network
        ({"preset": "compact", "components": 2}, {"plan": ("samples=8",)}, {"name": "guided", "samples": 8}),
        ({"preset": "compact", "components": 2}, {"planner": "guided"}, {"name": "guided", "samples": 16}),
        ({"preset": "compact", "components": 2}, {"planner": "cem"}, {"name": "cem"}),
    ],
)
def test_a_file_keeps_the_recipes_planner_and_flags_change_it(recipe, tmp_path, made, flags, kept):
    run = tiny.run_folder(tmp_path / "run", **made)
    out = export(Export(run=run, **flags))
    assert out == run / "model.onnx"
    assert OnnxWorldModel(out, device="cpu").planner == kept


def test_a_recipes_planner_that_cannot_be_is_refused_with_file_and_key(recipe, tmp_path):
    recipe('name = "guided"\nsample = 16')
    run = tiny.run_folder(tmp_path / "run", preset="compact", components=2)
    with pytest.raises(BadInput, match="sample") as refused:
        export(Export(run=run))
    assert str(refused.value).startswith(f"{tmp_path / 'two-room.toml'} has [planner]: ")
    assert not (run / "model.onnx").exists()


def test_a_task_stands_for_its_run_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny.run_folder(tmp_path / "runs" / "two-room", preset="compact", components=2)
    assert (tmp_path / export(Export(env="two-room"))).samefile(tmp_path / "runs/two-room/model.onnx")
