"""What a name on the command line means when files lie about: nothing here stands in for a model of another task."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent import evaluate
from agent.world_models.registry import PRETRAINED, find, load
from envs.errors import BadInput

ROOT = Path(__file__).parents[3]
NAME = "qqworld.onnx"
SHIPPED = PRETRAINED / "two-room" / NAME


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """The current folder, in which there is a model of PushT called as the shipped ones are."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(PRETRAINED / "pusht" / "lewm.onnx", tmp_path / NAME)
    return tmp_path


def test_a_bare_name_is_the_file_here_if_it_is_of_this_task_and_else_the_shipped_one():
    assert find(NAME, "two-room") == SHIPPED
    assert find(NAME, "pusht") == Path(NAME)
    assert find("lewm.onnx", "two-room") == PRETRAINED / "two-room" / "lewm.onnx"
    assert load(NAME, "two-room").sha256 != load(NAME, "pusht").sha256


@pytest.mark.parametrize("path", [f"./{NAME}", f"folder/{NAME}", "{here}/qqworld.onnx"])
def test_a_path_is_taken_as_it_is(here, path):
    (here / "folder").mkdir()
    shutil.copy(NAME, here / "folder" / NAME)
    path = path.format(here=here)
    assert find(path, "two-room") == Path(path)
    with pytest.raises(BadInput, match="is a model of pusht, not of two-room"):
        load(path, "two-room")


def test_a_bare_name_that_is_not_shipped_is_the_file_here_whatever_its_task(here):
    (here / NAME).rename("own.onnx")
    assert find("own.onnx", "two-room") == Path("own.onnx")
    with pytest.raises(BadInput, match=r"own\.onnx is a model of pusht, not of two-room"):
        load("own.onnx", "two-room")


def test_a_file_here_that_is_no_model_is_refused_and_not_passed_over(here):
    (here / NAME).write_text("hello")
    with pytest.raises(BadInput, match="is not a usable world model"):
        find(NAME, "two-room")


@pytest.mark.parametrize(("task", "path"), [("two-room", SHIPPED), ("pusht", NAME)])
def test_an_evaluation_prints_the_path_that_it_took(monkeypatch, capsys, task, path):
    words = f"evaluate --env {task} --model {NAME} --agents --episodes 1 --steps 2"
    monkeypatch.setattr(sys, "argv", words.split())
    assert evaluate.main() == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{task}: {path}"


@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("play", "play.py --env two-room --model pretrained/two-room/qqworld.onnx"),
        ("results", "-m study.measure --env two-room"),
        ("reproduce", "-m study.reproduce --env two-room"),
    ],
)
def test_make_names_the_shipped_file(target, command):
    done = subprocess.run(["make", "-n", target, "TASK=two-room"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert any(line.endswith(command) for line in done.stdout.splitlines())
