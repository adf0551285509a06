"""Plans are read before anything is run: what cannot be carried out is refused in one sentence."""

import pytest

from envs.errors import BadInput
from study.cells import PLANS
from study.plan import Measures, config_of, read
from study.run import Run, study

ALL = sorted(PLANS.glob("*.toml"))
GOOD = """
question = "Which?"

[shared]
steps = 10

[[grids]]
objective = ["qqworld", "lewm"]
seed = [0, 1]
"""


def plan_of(folder, text):
    path = folder / "some.toml"
    path.write_text(text)
    return read(path)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_every_plan_can_be_read_and_says_what_it_would_take(path, tmp_path, capsys):
    plan = read(path)

    assert study(Run(path, cells=tmp_path, dry_run=True)) == 0

    cells, hours = len(plan.cells), len(plan.cells) * plan.about.minutes / 60
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{path.stem}: {plan.about.question}"
    assert said[1] == f"{cells} cells, {cells} of them to run, about {hours:.1f} core-hours"


@pytest.mark.parametrize("path", [path for path in ALL if path.stem != "smoke"], ids=lambda path: path.stem)
def test_every_real_plan_measures_as_the_paper_does_on_pairs_that_decided_nothing(path):
    plan = read(path)

    assert plan.measures == Measures(frames=20_000, directions=6144, probe_seeds=6, probe_frames=4096)
    assert min(plan.evaluation.seeds) >= 200


def test_a_grid_is_all_combinations_on_top_of_what_cells_share(tmp_path):
    plan = plan_of(tmp_path, GOOD)

    assert [cell.name for cell in plan.cells] == [
        *("two-room-qqworld-s0", "two-room-qqworld-s1", "two-room-lewm-s0", "two-room-lewm-s1"),
    ]
    assert plan.cells[2].settings == {"steps": 10, "objective": "lewm", "seed": 0}
    assert config_of(plan.cells[2]).steps == 10


def test_windows_are_shared_out_by_the_batch(tmp_path):
    plan = plan_of(tmp_path, GOOD.replace("steps = 10", "windows = 1280").replace("seed = [0, 1]", "batch = [32, 64]"))

    assert [config_of(cell).steps for cell in plan.cells] == [40, 20, 40, 20]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("question", "answer", "which is no setting there"),
        ('question = "Which?"', "", "has no question"),
        ('question = "Which?"', "question = 3", "must be text"),
        ("[shared]", "minutes = 'long'\n[shared]", "minutes = 'long', which must be a number"),
        ("[shared]", "episodes = 2.5\n[shared]", "episodes = 2.5, which must be a whole number"),
        ("[shared]\nsteps = 10", "shared = 3", "must be a section"),
        ("[[grids]]", "[grids]", "needs at least one section"),
        ("steps = 10", "stepz = 10", "stepz, which is no setting there"),
        ("steps = 10", "steps = 'ten'", "steps = 'ten', which must be a whole number"),
        ("steps = 10", "windows = 'ten'", "windows = 'ten', which must be a whole number"),
        ("steps = 10", "steps = 0", "--steps must be at least 1"),
        ("steps = 10", "task = 'chess'", "unknown task 'chess'"),
        ('["qqworld", "lewm"]', "'zen'", "unknown objective 'zen'"),
        ('["qqworld", "lewm"]', "'vicreg'\nstrength = 3", "no setting 'strength'|no strength"),
        ("seed = [0, 1]", "seed = [0, 0]", "has the cell two-room-lewm-s0 twice"),
        ("seed = [0, 1]", "seed = []", "a grid without cells: seed is an empty list"),
        ("seed = [0, 1]", "seed = 0\n[evaluate]\nplanners.magic = {}", "unknown planner 'magic'"),
        ("seed = [0, 1]", "seed = 0\n[evaluate]\nplanners.lewm = { luck = 1 }", "no setting 'luck'"),
        ("seed = [0, 1]", "seed = 0\n[evaluate]\nseeds = []", "at least one"),
        ("seed = [0, 1]", "seed = 0\n[evaluate]\nepisodes = 0", "episodes = 0, which must be at least 1"),
        ("seed = [0, 1]", "seed = 0\n[measure]\ndirections = 0", "directions = 0, which must be at least 1"),
        ("seed = [0, 1]", "seed = 0\n[contrast]\nplanner = 'cem'", "which \\[evaluate\\] does not run"),
        ("seed = [0, 1]", "seed = [", "is not a plan that can be read"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_in_one_sentence(tmp_path, old, new, sentence):
    assert old in GOOD

    with pytest.raises(BadInput, match=sentence) as refused:
        plan_of(tmp_path, GOOD.replace(old, new))

    assert "\n" not in str(refused.value)
    assert "some.toml" in str(refused.value)


def test_a_plan_that_is_not_there_and_a_cell_that_it_lacks_are_named(tmp_path):
    with pytest.raises(BadInput, match=r"nowhere\.toml is not a plan that can be read"):
        read(tmp_path / "nowhere.toml")
    with pytest.raises(BadInput, match="the plan some has no cell two-room-lewm-s7"):
        plan_of(tmp_path, GOOD).cell("two-room-lewm-s7")
