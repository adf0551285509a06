"""Released models come from a clean revision, all of them or none."""

import pytest

from agent.world_models.onnx import OnnxWorldModel
from envs import BadInput
from study import release
from study.release import Release
from tests import tiny


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(release, "uncommitted", lambda: [])
    for seed, folder in enumerate(("two-room", "two-room-lewm")):
        tiny.run_folder(tmp_path / "runs" / folder, components=2, seed=seed)
    return tmp_path


def test_both_models_are_exported_with_their_cards_and_what_describes_them(runs):
    files = release.release(Release("two-room", out=runs / "shipped"))

    assert [OnnxWorldModel(file, device="cpu").task for file in files] == ["two-room", "two-room"]
    for objective in ("qqworld", "lewm"):
        assert (runs / "shipped/two-room" / f"{objective}.md").exists()
        assert (runs / "shipped/two-room" / objective / "config.json").exists()
    assert not list((runs / "shipped").rglob("*.safetensors"))


def test_a_tree_with_changes_releases_nothing(runs, monkeypatch):
    monkeypatch.setattr(release, "uncommitted", lambda: ["README.md"])

    with pytest.raises(BadInput, match="changes that are not committed"):
        release.release(Release("two-room", out=runs / "shipped"))
    assert not (runs / "shipped").exists()


def test_a_missing_run_is_said_before_anything_is_written(runs):
    with pytest.raises(BadInput, match="there is no run"):
        release.release(Release("pusht", out=runs / "shipped"))
    assert not (runs / "shipped").exists()
