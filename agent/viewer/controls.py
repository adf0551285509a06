"""Every key and mouse action: what it calls, and its words in the help and in the footer.

Keys have the names that a browser gives them, except for the space bar, which is "space". A window translates its own
key codes into these names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

DRAG = ("press", "drag", "release")
LABELS = {"space": "space", "ArrowRight": "right", "Tab": "Tab", "Escape": "Esc"}
"""Names of keys that are not a single character, as people read them."""


@dataclass(frozen=True)
class Control:
    """One row of the table."""

    help: str
    """What it does, for the help."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Name of a key to the method of `Viewer` that it calls."""
    mouse: tuple[str, ...] = ()
    """Mouse actions; each calls the method of `Viewer` with its name."""
    name: str = ""
    """How the help names it; default: the labels of its keys."""
    footer: str = ""
    """What it does in a word, for the footer; default: it does not stand there."""

    @property
    def label(self) -> str:
        return self.name or "  ".join(LABELS.get(key, key.upper()) for key in self.keys)


CONTROLS = (
    Control("pause and go on", {"space": "pause"}, footer="pause"),
    Control("one step", {"ArrowRight": "step"}),
    Control("restart this pair", {"r": "restart"}),
    Control("next pair", {"n": "next_pair"}, footer="next"),
    Control("a new goal", {"g": "new_goal"}, footer="goal"),
    Control("planner on or off", {"p": "toggle_planner"}, footer="planner"),
    Control("another planner: cem, guided, propose", {"m": "switch_planner"}),
    Control("candidates on or off", {"c": "toggle_candidates"}, footer="candidates"),
    Control("what is real, what is imagined", {"Tab": "toggle_imagined"}),
    Control("slower, faster", {"-": "slower", "=": "faster"}),
    Control("record a video", {"v": "record"}, footer="record"),
    Control("save a screenshot", {"s": "screenshot"}),
    Control("push the goal object", mouse=DRAG, name="drag 'now'"),
    Control("place the goal (the wheel turns it)", mouse=(*DRAG, "wheel"), name="drag 'goal'"),
    Control("this help", {"h": "toggle_help"}, footer="all keys"),
    Control("quit", {"q": "quit", "Escape": "quit"}),
)

KEYS = {key: method for control in CONTROLS for key, method in control.keys.items()}
"""Name of each key to the method of `Viewer` that it calls."""
MOUSE = tuple(dict.fromkeys(action for control in CONTROLS for action in control.mouse))
"""Every mouse action, which is also the name of a method of `Viewer`."""
HELP = [(control.label, control.help) for control in CONTROLS]
"""The rows of the help: what to press, and what it does."""
FOOTER = "    ".join(f"{control.label} {control.footer}" for control in CONTROLS if control.footer)
"""The last line of the frame."""
