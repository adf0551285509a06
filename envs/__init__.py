"""Four goal-conditioned tasks as gymnasium environments, their data policies, the collector and evaluation pairs.

`envs.make("pusht")` builds a task, `gymnasium.make("qqworld/PushT-v0")` the same with a time limit, and
`envs.pairs("pusht", seed=0, n=50)` gives start and goal states that no collected data contains.
"""

import importlib
from typing import Any

import gymnasium

from envs.base import Task
from envs.errors import BadInput
from envs.pairs import OFFSET, Pair, fingerprint, pairs, remembered

TASKS = {
    "two-room": "envs.two_room:TwoRoom",
    "pusht": "envs.pusht:PushT",
    "reacher": "envs.reacher:Reacher",
    "cube": "envs.cube:Cube",
}
"""Name on the command line to `module:Class`; a simulator is imported only when its task is made."""

for _entry in TASKS.values():
    gymnasium.register(f"qqworld/{_entry.split(':')[1]}-v0", entry_point=_entry, max_episode_steps=100)


def make(name: str, **settings: Any) -> Task:
    """The task called `name`, with `size`, `look` and `render_mode` as its settings."""
    if name not in TASKS:
        raise BadInput(f"unknown task '{name}': choose one of {', '.join(TASKS)}")
    module, cls = TASKS[name].split(":")
    return getattr(importlib.import_module(module), cls)(**settings)


__all__ = ["OFFSET", "TASKS", "BadInput", "Pair", "Task", "fingerprint", "make", "pairs", "remembered"]
