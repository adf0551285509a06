"""The reader of model files under coverage-guided fuzzing: any bytes are a model or are refused in one sentence.

    python -m tests.fuzz.model_file -runs=10000000 -max_len=4096 some-folder tests/fuzz/corpus      (`make fuzz`)

It needs atheris (`pip install atheris`). The bytes before the checksum are fuzzed, which is then made to fit. What it
finds is kept in `tests/fuzz/corpus`, whose files `test_corpus.py` replays.
"""

import sys
import time

import atheris

with atheris.instrument_imports(include=["agent.world_models.file"]):
    from agent.world_models import file as model_file
from envs.errors import BadInput

MAX_SECONDS = 10


def read(content: bytes) -> str | None:
    """The sentence with which `content`, once sealed, is refused; None if it is a model."""
    try:
        model_file.parse_file(model_file.seal(content))
    except BadInput as refused:
        return str(refused)
    return None


def one_input(content: bytes) -> None:
    """Anything but a plain sentence in time is a finding."""
    started = time.process_time()
    sentence = read(content)
    if sentence is not None and not (sentence.isprintable() and len(sentence) < 500):
        raise AssertionError(f"not a sentence: {sentence!r}")
    if time.process_time() - started > MAX_SECONDS:
        raise AssertionError("too slow")


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
