"""Four goal-conditioned tasks as gymnasium environments, their data policies, the collector and evaluation pairs.

`envs.make("pusht")` builds a task, `gymnasium.make("qqworld/PushT-v0")` the same with a time limit, and
`envs.pairs("pusht", seed=0, n=50)` gives start and goal states that no collected data contains. Names that need
gymnasium or a simulator are imported when they are first used: errors and datasets work where neither is installed.
"""

import importlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from envs.errors import BadInput

if TYPE_CHECKING:
    from envs.base import Task
    from envs.evaluation_pairs import OFFSET, Pair, fingerprint, pairs, remembered

TASKS = {
    "two-room": "envs.two_room:TwoRoom",
    "pusht": "envs.pusht:PushT",
    "reacher": "envs.reacher:Reacher",
    "cube": "envs.cube:Cube",
}
"""Name on the command line to `module:Class`; a simulator is imported only when its task is made."""

_LATER = {"Task": "envs.base"} | dict.fromkeys(
    ("OFFSET", "Pair", "fingerprint", "pairs", "remembered"), "envs.evaluation_pairs"
)

with suppress(ImportError):
    import gymnasium

    for _entry in TASKS.values():
        gymnasium.register(f"qqworld/{_entry.split(':')[1]}-v0", entry_point=_entry, max_episode_steps=100)


def make(name: str, **settings: Any) -> "Task":
    """The task called `name`, with `size`, `look` and `render_mode` as its settings."""
    if name not in TASKS:
        raise BadInput(f"unknown task '{name}': choose one of {', '.join(TASKS)}")
    module, cls = TASKS[name].split(":")
    return getattr(importlib.import_module(module), cls)(**settings)


if not TYPE_CHECKING:  # a type checker that saw it would let every name pass

    def __getattr__(name: str) -> Any:
        """A name of this package that is imported when it is first used."""
        if name not in _LATER:
            raise AttributeError(f"module 'envs' has no attribute '{name}'")
        return getattr(importlib.import_module(_LATER[name]), name)


__all__ = ["OFFSET", "TASKS", "BadInput", "Pair", "Task", "fingerprint", "make", "pairs", "remembered"]
