"""What a person typed or handed over was wrong: one sentence, exit status 2."""

import sys
from collections.abc import Callable


class BadInput(ValueError):
    """Wrong input; its message is one sentence that says what was wrong, what was expected and what to do."""


def run(main: Callable[[], int | None]) -> None:
    """Run a command line's `main`; bad input becomes one sentence on stderr and exit status 2, never a traceback."""
    try:
        sys.exit(main() or 0)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
