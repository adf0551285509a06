"""The table of keys and mouse actions: what it calls, and the help and the footer that come from it."""

import subprocess
import sys

from agent.viewer.app import Viewer
from agent.viewer.controls import CONTROLS, FOOTER, HELP, KEYS, MOUSE, PANELS


def test_every_key_and_mouse_action_calls_a_method_of_the_viewer():
    assert all(callable(getattr(Viewer, method)) for method in (*KEYS.values(), *MOUSE))
    assert MOUSE == ("press", "drag", "release", "wheel")


def test_no_key_stands_twice_in_the_table():
    assert len(KEYS) == sum(len(control.keys) for control in CONTROLS)


def test_the_help_has_a_row_for_every_control():
    assert len(HELP) == len(CONTROLS)
    assert ("space", "pause and go on") in HELP
    assert ("M", "the next planner") in HELP
    assert ("-  =  +", "slower, faster") in HELP
    assert ("drag 'now'", "push the goal object") in HELP
    assert HELP[-1] == ("Q  Esc", "quit")


def test_the_help_explains_the_panels():
    words = " ".join(name + " " + meaning for name, meaning in PANELS)
    assert all(term in words for term in ("tail", "200 x 4", "blocks", "imagined", "p50"))


def test_the_footer_has_the_controls_that_are_used_most():
    assert FOOTER == "space pause    N next    G goal    P planner    C candidates    V record    H all keys"


def test_a_key_that_is_not_in_the_table_does_nothing(make_viewer):
    viewer = make_viewer()
    view = viewer.view
    for name in ("x", "F1", "press", "hint", "_aim", ""):
        viewer.key(name)
    assert viewer.view is view
    assert not viewer.closed


def test_the_table_can_be_read_without_pygame():
    code = "import sys, agent.viewer.controls; sys.exit('pygame' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
