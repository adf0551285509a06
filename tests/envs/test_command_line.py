"""A mistyped command line is answered in one sentence, whatever the terminal can draw."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_mistyped_flag_is_one_line_and_status_two(encoding):
    command = [sys.executable, "-m", "envs.collect", "--env", "two-room", "--bogus"]

    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONIOENCODING": encoding})

    assert (done.returncode, done.stderr) == (2, "error: unrecognized options: --bogus (see --help)\n")
