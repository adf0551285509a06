"""Data and configurations that the tests of training share."""

from pathlib import Path

import pytest

from tests.moving_dot import write
from tests.training.runs import TINY, go
from training.config import Config, Regulariser


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "dot.h5", episodes=12, steps=30, side=32)


@pytest.fixture
def quick(monkeypatch):
    """Most tests look neither at the probes nor at the picture; `monkeypatch.undo()` brings both back."""
    monkeypatch.setattr("training.measures.probes.STEPS", 3)
    monkeypatch.setattr("training.measures.plots.draw", lambda lines, path, title: path.touch())


@pytest.fixture
def config(data, tmp_path) -> Config:
    return Config(
        env="dot",
        data=data,
        out=tmp_path / "run",
        preset="compact-transformer",
        steps=12,
        schedule=12,
        batch=8,
        network=TINY,
        regulariser=Regulariser(directions=16, queue=2),
        threads=1,
        log_every=2,
        eval_every=6,
        checkpoint_every=3,
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Config:
    """A run of six steps."""
    folder = tmp_path_factory.mktemp("dot")
    data = write(folder / "dot.h5", episodes=12, steps=40, side=32)
    config = Config(
        env="dot", data=data, out=folder / "run", preset="compact-transformer", network=TINY, threads=1,
        steps=6, batch=8, regulariser=Regulariser(directions=16), eval_every=6, checkpoint_every=3,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.measures.plots.draw", lambda lines, path, title: path.touch())
        go(config)
    return config
