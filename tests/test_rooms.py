"""Every room imports only what docs/architecture.md lets it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SIMULATORS = {"gymnasium", "pymunk", "mujoco", "dm_control", "ogbench"}
TRAINING = {"torch", "models", "training", "export", "study", "onnxscript"}
WINDOWS = {"pygame", "agent.viewer"}

FORBIDDEN = {
    "play.py": TRAINING,
    "agent": TRAINING,
    "agent/world_models": {"pygame", "agent.planning", "agent.episodes", "agent.evaluation", "agent.viewer"},
    "agent/planning": {"envs", "agent.episodes", "agent.evaluation", *WINDOWS},
    "agent/episodes": {"agent.evaluation", *WINDOWS},
    "agent/evaluation": WINDOWS,
    "envs": {"agent", "onnx", "onnxruntime", *TRAINING},
    "models": {"agent", "training", "export", "study", *SIMULATORS},
    "training": {"agent", "export", "study", *SIMULATORS},
    "export": {"training", "study"},
}
"""Room or sub-room to the packages and modules that nothing in it may import."""
ENVS_FOR_LEARNERS = {"envs.errors", "envs.dataset", "envs.recipes"}
"""What `models` and `training` may import of `envs`: errors, the dataset format and recipes."""
SOURCE = ("agent", "envs", "models", "training", "export", "study")
MOST_LINES, MOST_MODULES = 300, 14


def imported(path: Path) -> set[str]:
    """The modules that a file imports anywhere in it, as dotted names; `from a import b` is `a.b`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def trespasses(room: str, root: Path = ROOT) -> list[str]:
    """What the files of a room import though they may not."""
    place = root / room
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    assert files
    found = []
    for file in files:
        for name in sorted(imported(file)):
            barred = any(name == module or name.startswith(f"{module}.") for module in FORBIDDEN[room])
            if room in ("models", "training") and name.split(".")[0] == "envs":
                barred = not any(name.startswith(f"{module}.") or name == module for module in ENVS_FOR_LEARNERS)
            if barred:
                found.append(f"{file.relative_to(root)} imports {name}")
    return found


@pytest.mark.parametrize("room", FORBIDDEN)
def test_a_room_does_not_reach_where_it_may_not(room):
    assert trespasses(room) == []


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("agent/planning", "from envs.errors import BadInput"),
        ("agent/planning", "import agent.episodes.episode"),
        ("agent/episodes", "from agent.evaluation.statistics import Rate"),
        ("agent/episodes", "from agent import viewer"),
        ("agent/evaluation", "import pygame"),
        ("agent/world_models", "from agent.planning import make"),
        ("agent", "import torch.nn"),
        ("envs", "from agent.factory import make_agent"),
        ("models", "from envs import Task"),
        ("training", "import envs.pusht"),
        ("export", "from training.config import Config"),
        ("play.py", "import training"),
    ],
)
def test_a_forbidden_import_is_noticed(room, line, tmp_path):
    file = tmp_path / room if room.endswith(".py") else tmp_path / room / "deep" / "module.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"if True:\n    {line}\n")

    assert len(trespasses(room, tmp_path)) == 1


def test_what_a_learner_may_read_of_envs_is_let_through(tmp_path):
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "module.py").write_text(
        "from envs.errors import BadInput\nfrom envs.dataset import layout\nfrom envs.recipes import apply\n"
    )

    assert trespasses("training", tmp_path) == []


def test_files_and_folders_stay_small_enough_to_read():
    files = [file for room in SOURCE for file in (ROOT / room).rglob("*.py")] + [ROOT / "play.py"]
    files += (ROOT / "tests").rglob("*.py")
    long = {str(file.relative_to(ROOT)) for file in files if len(file.read_text().splitlines()) > MOST_LINES}
    folders = {file.parent for file in files if file.name != "__init__.py" and ROOT / "tests" not in file.parents}
    crowded = {
        str(folder.relative_to(ROOT))
        for folder in folders
        if len([file for file in folder.glob("*.py") if file.name != "__init__.py"]) > MOST_MODULES
    }

    assert long == set()
    assert crowded == set()


def test_the_front_door_opens_where_torch_cannot_be_imported(tmp_path):
    program = (
        "import sys\n"
        "class Barred:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'onnxscript'):\n"
        "            raise ImportError(f'{name} is barred')\n"
        "sys.meta_path.insert(0, Barred())\n"
        "import agent, envs, play\n"
        "sys.argv = ['play.py', '--env', 'two-room', '--agent', 'expert', '--headless', '--episodes', '1',"
        f" '--video', {str(tmp_path / 'v.mp4')!r}]\n"
        "from envs.errors import run\n"
        "run(play.main)"
    )

    child = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)

    assert child.returncode == 0, child.stderr
    assert (tmp_path / "v.mp4").stat().st_size > 1000
