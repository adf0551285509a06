"""Every key and mouse action: what it calls, and its words in the help and in the footer.

Keys have the names that a browser gives them, except for the space bar, which is "space". A window translates its own
key codes into these names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

DRAG = ("press", "drag", "release")
LABELS = {
    "space": "space",
    "ArrowRight": "right",
    "ArrowLeft": "left",
    "ArrowUp": "up",
    "ArrowDown": "down",
    "Tab": "Tab",
    "Escape": "Esc",
}
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
    Control("one step, one step back", {"ArrowRight": "step", "ArrowLeft": "step_back"}),
    Control("restart this pair", {"r": "restart"}),
    Control("next pair", {"n": "next_pair"}, footer="next"),
    Control("a new goal", {"g": "new_goal"}, footer="goal"),
    Control("planner on or off", {"p": "toggle_planner"}, footer="planner"),
    Control("the next planner", {"m": "switch_planner"}),
    Control("choose a setting of the planner", {"[": "previous_setting", "]": "next_setting"}),
    Control("change the setting", {"ArrowUp": "raise_setting", "ArrowDown": "lower_setting"}),
    Control("candidates on or off", {"c": "toggle_candidates"}, footer="candidates"),
    Control("the goal's outline over 'now'", {"o": "toggle_ghost"}),
    Control("what is real, what is imagined", {"Tab": "toggle_imagined"}),
    Control("slower, faster", {"-": "slower", "=": "faster", "+": "faster"}),
    Control("record a video", {"v": "record"}, footer="record"),
    Control("save a screenshot", {"s": "screenshot"}),
    Control("look back in this episode", mouse=DRAG, name="the top line"),
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
PANELS = (
    (
        "now",
        "The world, with the candidates that the planner tried (violet), the best of them (orange), the plan (red) "
        "and the goal's outline (green).",
    ),
    (
        "imagined",
        "The block of the plan at which the planner wants to arrive, large, and blocks on the way; '+5' is 5 "
        "steps ahead. A model without a decoder cannot draw: the picture is the stored frame with the nearest latent, "
        "and how far that is stands below.",
    ),
    (
        "latent distance",
        "Between the latents of now and of the goal, Euclidean: measured, and as each plan predicted it. "
        "Green marks steps at which the goal is reached.",
    ),
    (
        "QQ of latents",
        "Quantiles of the latents along random directions: on the dashed line they are Gaussian. 'tail' is "
        "the share outside the sphere that holds nine tenths of a Gaussian: 0.10 is right.",
    ),
    (
        "200 x 4   5 blocks",
        "200 candidates in each of 4 iterations; a plan looks 5 blocks ahead, and a block is a few actions.",
    ),
    ("expects", "What the actions come from, and the latent distance that the model predicts for them."),
    (
        "plan, time",
        "How long plans take: half of them less than p50, 19 of 20 less than p95, and what the last one spent it on.",
    ),
)
"""What the panels show, for the help."""
