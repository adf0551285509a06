"""Choose how MuJoCo renders. Import this before MuJoCo, which reads `MUJOCO_GL` once and stumbles on a bad value."""

import functools
import importlib
import os
import subprocess
import sys

from envs.errors import BadInput

PROBE = "import mujoco; c = mujoco.GLContext(8, 8); c.make_current(); c.free()"
PROBE_SECONDS = 30
KNOWN_GOOD = "QQWORLD_GL_CHECKED"  # the backend that a parent process has already tried


@functools.cache
def choose_backend() -> str:
    """The GL backend that works here, set in `MUJOCO_GL` so that child processes use it too.

    A value that the user set is respected. Elsewhere than on Linux the choice is MuJoCo's. On Linux EGL and then
    OSMesa are tried in a child process with a time limit, so that a broken driver can neither hang nor crash this
    one.
    """
    wanted = os.environ.get("MUJOCO_GL")
    if sys.platform != "linux":
        return wanted or "default"
    for backend in [wanted] if wanted else ["egl", "osmesa"]:
        if os.environ.get(KNOWN_GOOD) == backend or _works(backend):
            os.environ["MUJOCO_GL"] = os.environ[KNOWN_GOOD] = backend
            if loaded := sys.modules.get("mujoco.rendering.classic.gl_context"):
                importlib.reload(loaded)  # MuJoCo reads the variable when it is imported
            return backend
    raise missing_gl(f"MUJOCO_GL={wanted} does not work here" if wanted else "neither EGL nor OSMesa works here")


def missing_gl(why: str) -> BadInput:
    """The one sentence for a machine that cannot render."""
    return BadInput(
        f"MuJoCo cannot render because {why}: install libegl1, libosmesa6 and libgl1 "
        "(Debian, Ubuntu: apt-get install libegl1 libosmesa6 libgl1) or set MUJOCO_GL to a backend that works"
    )


def _works(backend: str) -> bool:
    try:
        child = subprocess.run(
            [sys.executable, "-c", PROBE],
            env={**os.environ, "MUJOCO_GL": backend},
            timeout=PROBE_SECONDS,
            capture_output=True,
        )
    except subprocess.TimeoutExpired:
        return False
    return child.returncode == 0


try:
    choose_backend()  # before MuJoCo is imported, which would fall back on a window
except BadInput:
    if "MUJOCO_GL" in os.environ:
        raise
    # without GL the physics still runs; the first picture raises this again
