"""Every room imports only what the design lets it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FORBIDDEN = {
    "agent": {"torch", "models", "training", "export", "onnxscript"},
    "envs": {"torch", "agent", "models", "training", "export", "onnx", "onnxruntime"},
    "models": {"envs", "agent", "training", "export"},
    "training": {"agent", "export", "gymnasium", "mujoco", "pymunk"},
    "export": {"training"},
}


def imported(path):
    """The top-level packages that a file imports anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("room", FORBIDDEN)
def test_a_room_does_not_reach_where_it_may_not(room):
    files = sorted((ROOT / room).rglob("*.py"))
    reached = {(str(file.relative_to(ROOT)), name) for file in files for name in imported(file)}

    assert files
    assert not {(file, name) for file, name in reached if name in FORBIDDEN[room]}


def test_the_front_door_opens_where_torch_cannot_be_imported(tmp_path):
    program = (
        "import sys; sys.modules['torch'] = sys.modules['onnxscript'] = None\n"
        "import agent, envs, play\n"
        f"sys.argv = ['play.py', '--env', 'two-room', '--agent', 'expert', '--headless', '--episodes', '1',"
        f" '--video', {str(tmp_path / 'v.mp4')!r}]\n"
        "from envs.errors import run\n"
        "run(play.main)"
    )

    child = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)

    assert child.returncode == 0, child.stderr
    assert (tmp_path / "v.mp4").stat().st_size > 1000
