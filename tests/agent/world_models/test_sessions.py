"""Sessions of ONNX Runtime: what a device is asked for, calls that are split, and entry points that are closed."""

import threading

import numpy as np
import onnxruntime
import pytest

from agent.world_models import onnx as onnx_model
from agent.world_models import ort as sessions
from agent.world_models.onnx import OnnxWorldModel
from tests import tiny


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Two files with the same names and other weights."""
    folders = [tmp_path_factory.mktemp("model") for _ in range(2)]
    return [tiny.file(folder, seed=seed, components=2) for seed, folder in enumerate(folders)]


def asked_for(paths, device, monkeypatch):
    """The options of every provider that the sessions of two models ask for, by model and entry point."""
    real, asked = onnxruntime.InferenceSession, {}

    class Session(real):
        def __init__(self, model, options, providers, **settings):
            super().__init__(model, options, providers=["CPUExecutionProvider"])
            asked[len(asked)] = {each[0]: each[1] for each in providers if not isinstance(each, str)}

        def get_providers(self):
            return list(sessions.PROVIDERS.values())

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: list(sessions.PROVIDERS.values()))
    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    for path in paths:
        model = OnnxWorldModel(path, device=device, threads=4)
        for output in model._file.work:
            entry = model._entry(output)
            assert entry._pool is None  # one thread at a time uses a session of a GPU
    return list(asked.values())


def test_tensorrt_keeps_its_engines_apart_by_file_and_entry_point(paths, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = asked_for(paths, "tensorrt", monkeypatch)
    folders = [each["TensorrtExecutionProvider"]["trt_engine_cache_path"] for each in asked]
    digests = [OnnxWorldModel(path, device="cpu").sha256 for path in paths]
    assert len(set(folders)) == len(folders) == 2 * 8
    assert all(folder.startswith(str(tmp_path)) for folder in folders)
    for digest, own in zip(digests, (folders[:8], folders[8:]), strict=True):
        assert all(digest in folder for folder in own)


def test_tensorrt_records_no_kernels(paths, monkeypatch):
    for each in asked_for(paths, "tensorrt", monkeypatch):
        assert not any("graph" in name for options in each.values() for name in options)


def test_cuda_records_kernels(paths, monkeypatch):
    for each in asked_for(paths, "cuda", monkeypatch):
        assert each["CUDAExecutionProvider"]["enable_cuda_graph"] == "1"


@pytest.mark.parametrize(("device", "recordings"), [("cpu", [None]), ("tensorrt", [None]), ("cuda", [1, 2, 3])])
def test_recordings_are_made_only_where_there_are_any(paths, device, recordings, monkeypatch):
    session = sessions.Opener("cpu", 1).open(
        onnx_model.graph.entry_point(OnnxWorldModel(paths[0], device="cpu")._file.model, "latent").SerializeToString(),
        "latent",
        1,
    )
    named = []
    monkeypatch.setattr(sessions, "_Buffers", lambda *given: named.append(given[-1]))
    entry = sessions.EntryPoint(session, device, "latent", workers=1, most_rows=9)
    for rows in (1, 2, 3):
        entry._for_shapes({"pixels": np.zeros((rows, 16, 16, 3), np.uint8)}, (rows, 8), 0)
    assert named == (recordings if len(recordings) == 3 else recordings * 3)


def test_a_large_call_is_split_and_gives_the_same_bits(paths, monkeypatch):
    whole, split = (OnnxWorldModel(paths[0], device="cpu", threads=2) for _ in range(2))
    for output in split._file.most_rows:
        split._file.most_rows[output] = 16
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (50, 16, 16, 3), dtype=np.uint8)
    np.testing.assert_array_equal(whole.encode(pictures), split.encode(pictures))
    actions = rng.uniform(-1, 1, (50, 4, 10)).astype(np.float32)
    for contexts in (1, 50):
        context = rng.standard_normal((contexts, 2, 8)).astype(np.float32)
        past = rng.uniform(-1, 1, (contexts, 1, 10)).astype(np.float32)
        for steps in (1, 4):
            given = context, past, actions[:, :steps]
            np.testing.assert_array_equal(whole.rollout(*given), split.rollout(*given))
    start, goal = rng.standard_normal((2, 50, 8)).astype(np.float32)
    for one, other in zip(
        whole.propose(start, goal, np.ones((50, 1))), split.propose(start, goal, np.ones((50, 1))), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_no_call_has_more_rows_than_the_file_was_checked_for(paths, monkeypatch):
    model = OnnxWorldModel(paths[0], device="cpu", threads=2)
    seen = []
    run = sessions.EntryPoint._run
    monkeypatch.setattr(
        sessions.EntryPoint,
        "_run",
        lambda self, given, shape, part: (seen.append(shape[0]), run(self, given, shape, part))[1],
    )
    model.encode(np.zeros((100, 16, 16, 3), np.uint8))
    assert max(seen) <= model._file.most_rows["latent"] < 100
    assert sum(seen) == 100


def test_entry_points_used_longest_ago_are_closed_when_packed_weights_are_too_many(paths, monkeypatch):
    model = OnnxWorldModel(paths[0], device="cpu", threads=1)
    monkeypatch.setattr(
        onnx_model, "MAX_ALL_PACKED_BYTES", sum(work.packed_bytes for work in model._file.work.values()) - 1
    )
    for output in model._file.work:
        model._entry(output)
    assert "latent" not in model._entries
    assert list(model._file.work)[-1] in model._entries
    assert model.encode(np.zeros((1, 16, 16, 3), np.uint8)).shape == (1, 8)


def test_an_entry_point_is_opened_once_by_many_threads(paths, monkeypatch):
    model = OnnxWorldModel(paths[0], device="cpu", threads=1)
    opened = []
    real = model._opener.open
    monkeypatch.setattr(model._opener, "open", lambda *given: (opened.append(given[1]), real(*given))[1])
    threads = [threading.Thread(target=model._entry, args=("latents_1",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [f"{model.sha256}/latents_1"]
