"""Recipes: typed tables that are the defaults of the commands; what a command does not know is refused."""

import subprocess
import sys
from pathlib import Path

import h5py
import pytest

import envs
from agent import planning
from envs import collect, recipes
from envs.collect import Collect
from envs.errors import BadInput
from study.measure import Measurements
from training.config import Config
from training.phases.pipeline import defaults, proposal_config

SECTIONS = dict.fromkeys(recipes.SECTIONS, "")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a recipe of Two-Room whose sections hold what is given, and has it read instead of the shipped one."""
    monkeypatch.setattr(recipes, "FOLDER", tmp_path)

    def writing(**sections: str) -> Path:
        path = tmp_path / "two-room.toml"
        path.write_text("".join(f"[{name}]\n{text}\n" for name, text in (SECTIONS | sections).items()))
        return path

    return writing


def refusal(section: str = "data") -> str:
    with pytest.raises(BadInput) as refused:
        recipes.apply(Collect("two-room"), "two-room", section)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_section_takes_the_place_of_a_commands_defaults(write):
    write(data="episodes = 7\nstray = 0.5\nminutes = 3")
    settings = recipes.apply(Collect("two-room", seed=4), "two-room", "data")
    assert settings == Collect("two-room", seed=4, episodes=7, stray=0.5)


def test_settings_inside_settings_need_no_prefix(write):
    write(encoder="latent = 8\nchannels = [4, 8]\nstrength = 10\nsteps = 3")
    config = recipes.apply(Config("two-room"), "two-room", "encoder")
    assert (config.network.latent, config.network.channels, config.regulariser.strength, config.steps) == (
        8,
        (4, 8),
        10,
        3,
    )


def test_a_task_without_a_recipe_keeps_the_defaults(write):
    assert recipes.apply(Collect("cube"), "cube", "data") == Collect("cube")
    assert (recipes.planner("cube"), recipes.minutes("cube")) == ({}, {})


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("episode = 7", "has [data] episode, which is no setting there: it has "),
        ("latent = 7", "has [data] latent, which is no setting there: it has "),
        ('episodes = "many"', "has [data] episodes = 'many', which must be a whole number"),
        ("episodes = 7.5", "has [data] episodes = 7.5, which must be a whole number"),
        ("episodes = true", "has [data] episodes = True, which must be a whole number"),
        ('stray = "some"', "has [data] stray = 'some', which must be a number"),
        ("overwrite = 1", "has [data] overwrite = 1, which must be true or false"),
        ("out = 1", "has [data] out = 1, which must be text"),
        ('look = "nice"', "has [data] look = 'nice', which must be 'fast' or 'paper'"),
    ],
)
def test_an_unknown_key_or_a_wrong_type_is_named_with_its_file(write, line, sentence):
    path = write(data=line)
    assert refusal().startswith(f"{path} {sentence}")


def test_lists_and_tables_are_checked_too(write):
    path = write(measure='offsets = [25, "far"]')
    with pytest.raises(BadInput, match="must be a list, each of it a whole number") as refused:
        recipes.apply(Measurements(), "two-room", "measure")
    assert str(refused.value).startswith(f"{path} has [measure] offsets")
    write(measure="planners = 3")
    with pytest.raises(BadInput, match="planners = 3, which must be a table"):
        recipes.apply(Measurements(), "two-room", "measure")


def test_a_missing_an_unknown_and_a_broken_section_are_named_with_their_file(write):
    path = write(plan="")
    assert refusal().startswith(f"{path} has an unknown section [plan]: a recipe has data, encoder")
    path.write_text("[data]\n")
    assert refusal().startswith(f"{path} has no section [encoder]: a recipe has data, encoder")
    path.write_text("data = 3\n")
    assert refusal().startswith(f"{path} has no section [data]")
    path.write_text("[data\n")
    assert refusal().startswith(f"{path} is not a TOML file that can be read: ")
    path.write_bytes(b"\xff")
    assert refusal().startswith(f"{path} is not a TOML file that can be read: ")


def test_minutes_are_read_where_the_recipe_says_them(write):
    write(data="minutes = 3", predictor="minutes = 4.5")
    assert recipes.minutes("two-room") == {"data": 3, "predictor": 4.5}
    path = write(proposals='minutes = "long"')
    with pytest.raises(BadInput, match="minutes = 'long', which must be a number") as refused:
        recipes.minutes("two-room")
    assert str(refused.value).startswith(f"{path} has [proposals]")


def test_a_command_refuses_a_recipe_in_one_sentence_with_status_two(write, tmp_path):
    path = write(data="stride = 2")
    program = (
        "import sys; from pathlib import Path; from envs import collect, recipes; from envs.errors import run; "
        f"recipes.FOLDER = Path({str(tmp_path)!r}); run(collect.main)"
    )
    done = subprocess.run([sys.executable, "-c", program, "--env", "two-room"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {path} has [data] stride, which is no setting there: it has ")
    assert done.stderr.count("\n") == 1


def collected(path: Path) -> dict:
    """What a dataset says about how it was collected."""
    with h5py.File(path) as file:
        names = {"frame_skip": "every"}
        return {names.get(key, key): value for key, value in file.attrs.items()}


@pytest.mark.parametrize(("flags", "changed"), [("", {}), ("--stray 0.1 --size 24", {"stray": 0.1, "size": 24})])
def test_the_collector_takes_the_recipe_and_flags_override_it(write, tmp_path, monkeypatch, flags, changed):
    table = {"episodes": 3, "every": 5, "stray": 0.35, "stray_every": 2, "size": 32}
    write(data="\n".join(f"{key} = {value}" for key, value in table.items()))
    words = f"--env two-room --workers 1 --out {tmp_path / 'data.h5'} {flags}"
    monkeypatch.setattr(sys, "argv", ["collect", *words.split()])

    assert collect.main() == 0

    assert collected(tmp_path / "data.h5").items() >= (table | changed).items()


def test_the_collector_takes_the_shipped_recipe(tmp_path):
    words = f"-m envs.collect --env two-room --episodes 3 --out {tmp_path / 'data.h5'}"
    subprocess.run([sys.executable, *words.split()], check=True, capture_output=True)
    wanted = recipes.read("two-room")["data"] | {"episodes": 3, "size": 64}
    wanted.pop(recipes.MINUTES, None)
    assert collected(tmp_path / "data.h5").items() >= wanted.items()


@pytest.mark.parametrize("task", envs.TASKS)
def test_a_shipped_recipe_is_understood_by_every_command_and_short(task):
    recipes.apply(Collect(task), task, "data").check()
    for phase in ("encoder", "joint", "predictor"):
        config = defaults(phase, Config(task))
        config.check()
        assert config.network_settings()["encoder"] == "moments"
    proposal_config(defaults("proposals", Config(task))).check()
    planning.make(**recipes.planner(task))
    assert recipes.apply(Measurements(), task, "measure").planners
    assert recipes.minutes(task).keys() <= set(recipes.SECTIONS)
    assert len(recipes.path_of(task).read_text().splitlines()) <= 60


def test_every_shipped_recipe_is_of_a_task():
    assert {path.stem for path in recipes.FOLDER.iterdir()} == set(envs.TASKS)


def test_every_setting_of_a_command_has_a_type_that_a_recipe_can_be_checked_against():
    for settings in (Collect("cube"), Config("cube"), Measurements()):
        for key, kind in recipes._keys(settings).items():
            assert recipes.describe(kind) != str(kind), key
