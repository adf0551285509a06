"""The README: its commands, run as they stand but for their size, its length and its links."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from study.documents import DOCUMENTS

ROOT = Path(__file__).parent.parent
MOST_LINES = 150
SMALL = {
    "envs.collect": {"--episodes": "8", "--workers": "1"},
    "training.train": {"--steps": "4", "--batch": "8", "--eval-every": "4"},
    "agent.evaluate": {"--episodes": "2", "--seeds": "0", "--workers": "1"},
    "play.py": {"--episodes": "1", "--steps": "10", "--headless": ""},
}
"""What makes each command quick."""
STEPS = [
    "python -m envs.collect --env two-room",
    "python -m training.train --env two-room",
    "python -m export --env two-room",
    "python play.py --env two-room --model runs/two-room/model.onnx",
]


def commands():
    """The command lines of the README's shell blocks, without remarks."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("python ")]


def shrunk(line):
    """The arguments of a command line, with the options that make it quick in place of its own."""
    words = shlex.split(line)[1:]
    for program, changes in SMALL.items():
        if program in words[:2]:
            for option, value in changes.items():
                if option in words:
                    begin = words.index(option)
                    end = next((i for i in range(begin + 1, len(words)) if words[i].startswith("--")), len(words))
                    del words[begin:end]
                words += [option, *value.split()]
    return [str(ROOT / word) if word == "play.py" else word for word in words]


def test_the_readmes_commands_lead_from_nothing_to_an_evaluated_model(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SDL_VIDEODRIVER": "dummy", "OMP_NUM_THREADS": "1"}
    lines = commands()
    assert lines[:4] == STEPS
    assert len(lines) >= 8
    for line in lines:
        done = subprocess.run(
            [sys.executable, *shrunk(line)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{line}\n{done.stderr[-2000:]}"
    for made in ("data/two-room.h5", "runs/two-room/config.json", "runs/two-room/model.onnx", "out.mp4"):
        assert (tmp_path / made).exists(), made
    for made in ("episodes.jsonl", "results/two-room/report.html"):
        assert (tmp_path / made).exists(), made


def test_the_readme_is_read_in_two_minutes():
    assert len((ROOT / "README.md").read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("document", [*DOCUMENTS, *sorted((ROOT / "docs").glob("*.md")), ROOT / "pretrained/README.md"])
def test_links_lead_somewhere(document):
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+)(?:#([^)]+))?\)", document.read_text())
    for target, anchor in targets:
        found = document.parent / target
        assert found.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", found.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\s-]", "", heading).lower().replace(" ", "-") for heading in headings}
