"""Errors and datasets work where gymnasium, OpenCV and the simulators are not installed."""

import subprocess
import sys

import pytest

BAR = """
import sys
class Barred:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("gymnasium", "cv2", "pymunk", "mujoco"):
            raise ImportError(f"{name} is barred")
sys.meta_path.insert(0, Barred())
"""


def call(program: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", BAR + program], capture_output=True, text=True)


@pytest.mark.parametrize(
    "program",
    [
        "from envs.errors import BadInput",
        "from envs import BadInput, TASKS",
        "import envs.dataset.reader, envs.dataset.writer",
        "import training.data.windows",
        "import models.run_folder, training.phases.trainer, training.phases.proposal_trainer",
    ],
)
def test_what_needs_no_simulator_is_imported_without_one(program):
    done = call(program)
    assert done.returncode == 0, done.stderr


def test_a_task_says_what_it_lacks():
    done = call("import envs\nenvs.make('two-room')")
    assert "ImportError: cv2 is barred" in done.stderr


def test_a_name_that_envs_does_not_have_is_an_attribute_error():
    done = call("import envs\nenvs.nothing")
    assert "AttributeError: module 'envs' has no attribute 'nothing'" in done.stderr


def test_tasks_are_registered_with_gymnasium_where_it_is_installed():
    program = "import gymnasium, envs; print(gymnasium.spec('qqworld/Cube-v0').entry_point)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "envs.cube:Cube\n"
