"""What fuzzing began with and what it found: each file is a model or is refused in one sentence, in time."""

import time
from pathlib import Path

import pytest

from agent.world_models import file as model_file
from tests.agent.world_models.edits import refusal

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
MODELS = [path for path in CORPUS if path.name.startswith("model-")]
OTHERS = [path for path in CORPUS if path not in MODELS]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_a_model_of_the_corpus_is_read(path):
    assert model_file.parse_file(model_file.seal(path.read_bytes())).work


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_every_other_file_of_the_corpus_is_refused_in_one_sentence(path):
    started = time.process_time()
    sentence = refusal(model_file.seal(path.read_bytes()))
    assert sentence.isprintable()
    assert len(sentence) < 500
    assert time.process_time() - started < 10


def test_the_corpus_is_small_and_holds_models():
    assert MODELS
    assert sum(path.stat().st_size for path in CORPUS) < 500_000
