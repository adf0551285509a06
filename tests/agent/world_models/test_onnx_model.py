"""A world-model file at work: shapes, devices, buffers, and the same numbers whatever it is computed beside."""

import subprocess
import sys
import threading

import numpy as np
import onnxruntime
import pytest

from agent.planning import make
from agent.planning.base import Problem
from agent.world_models import ort as onnx_session
from agent.world_models.onnx import OnnxWorldModel
from envs.errors import BadInput
from tests import tiny


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tiny.file(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(path):
    return OnnxWorldModel(path, device="cpu", threads=1)


def plans(count: int, contexts: int = 1, length: int = 1, steps: int = 4, seed: int = 0):
    """Context, past actions and actions for the tiny model."""
    rng = np.random.default_rng(seed)
    shapes = (contexts, length, 8), (contexts, length - 1, 10), (count, steps, 10)
    return tuple(rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes)


def test_pictures_and_plans_go_in_and_latents_come_out(model):
    latents = model.encode(np.zeros((3, 16, 16, 3), np.uint8))
    assert (latents.shape, latents.dtype) == ((3, 8), np.float32)
    for length in (1, 2, 3):
        assert model.rollout(*plans(5, length=length)).shape == (5, 4, 8)


def test_a_shorter_horizon_is_the_beginning_of_a_longer_one(model):
    context, past, actions = plans(5)
    np.testing.assert_array_equal(
        model.rollout(context, past, actions[:, :2]), model.rollout(context, past, actions)[:, :2]
    )


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_candidates_latents_do_not_depend_on_what_is_computed_beside_it(path, length):
    one, two = (OnnxWorldModel(path, device="cpu", threads=threads) for threads in (1, 2))
    context, past, actions = plans(40, length=length)
    together = two.rollout(context, past, actions)
    np.testing.assert_array_equal(one.rollout(context, past, actions), together)
    for count in (1, 2, 3, 7, 31):
        np.testing.assert_array_equal(one.rollout(context, past, actions[-count:]), together[-count:])
    stacked = np.repeat(context, 40, axis=0), np.repeat(past, 40, axis=0)
    np.testing.assert_array_equal(one.rollout(*stacked, actions), together)


def test_each_candidate_may_have_a_context_of_its_own(model):
    context, past, actions = plans(6, contexts=6, length=2)
    together = model.rollout(context, past, actions)
    for row in range(6):
        alone = model.rollout(*(each[row : row + 1] for each in (context, past, actions)))
        np.testing.assert_array_equal(alone[0], together[row])


def test_results_stay_what_they_were_when_the_buffers_are_used_again(model):
    first = model.rollout(*plans(4, seed=1))
    kept = first.copy()
    second = model.rollout(*plans(4, seed=2))
    np.testing.assert_array_equal(first, kept)
    assert not np.array_equal(first, second)


def test_buffers_stay_in_place_from_call_to_call_and_only_changes_are_copied(model, monkeypatch):
    context, past, actions = plans(4, length=2)
    model.rollout(context, past, actions)
    entry = model._entries["latents_2"]
    (buffers,) = (each for shapes, each in entry._buffers.items() if shapes[-1] == (4, 4, 10))
    places = {name: value.data_ptr() for name, value in buffers.inputs.items()}
    copied = []
    update = onnxruntime.OrtValue.update_inplace
    monkeypatch.setattr(
        onnxruntime.OrtValue, "update_inplace", lambda value, array: (copied.append(array.shape), update(value, array))
    )
    before = model.rollout(context, past, actions)
    assert copied == []
    after = model.rollout(context, past, actions + 0.5)
    assert copied == [(4, 4, 10)]  # the context stayed where it was
    assert not np.array_equal(before, after)
    assert {name: value.data_ptr() for name, value in buffers.inputs.items()} == places


def test_buffers_of_many_shapes_do_not_pile_up(model):
    for count in range(1, 30):
        model.rollout(*plans(count))
    assert len(model._entries["latents_1"]._buffers) == onnx_session.MAX_SHAPES


def test_two_threads_may_use_one_model(model):
    expected = [model.rollout(*plans(3, seed=seed)) for seed in range(40)]
    wrong = []

    def work(seeds):
        wrong.extend(seed for seed in seeds if not np.array_equal(model.rollout(*plans(3, seed=seed)), expected[seed]))

    threads = [threading.Thread(target=work, args=(range(start, 40, 2),)) for start in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("context", "past", "actions"),
    [
        ((1, 4, 8), (1, 3, 10), (2, 4, 10)),  # more context than the model has seen
        ((1, 1, 9), (1, 0, 10), (2, 4, 10)),
        ((1, 2, 8), (1, 0, 10), (2, 4, 10)),
        ((3, 1, 8), (3, 0, 10), (2, 4, 10)),  # neither one context nor one for each candidate
        ((1, 1, 8), (1, 0, 10), (2, 5, 10)),
        ((1, 1, 8), (1, 0, 10), (2, 0, 10)),
        ((1, 1, 8), (1, 0, 10), (2, 4, 9)),
    ],
)
def test_inputs_of_other_shapes_are_refused_in_one_sentence(model, context, past, actions):
    with pytest.raises(BadInput, match="this model takes contexts"):
        model.rollout(np.zeros(context), np.zeros(past), np.zeros(actions))


@pytest.mark.parametrize(
    "picture", [np.zeros((1, 8, 8, 3), np.uint8), np.zeros((1, 16, 16, 3)), np.zeros((16, 16, 3), np.uint8)]
)
def test_other_pictures_are_refused_in_one_sentence(model, picture):
    with pytest.raises(BadInput, match=r"sees pictures uint8 \(B, 16, 16, 3\)"):
        model.encode(picture)


def test_auto_takes_the_cpu_when_no_session_gets_a_gpu(path, capfd):
    model = OnnxWorldModel(path)
    assert model.provider in ("CUDA", f"CPU, {onnx_session.available_cores()} threads")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("device", ["cuda", "tensorrt"])
def test_a_gpu_that_was_asked_for_and_cannot_be_had_is_an_error(path, device, monkeypatch):
    opener = onnx_session.Opener(device, 1)
    monkeypatch.setattr(onnx_session.Opener, "_try", lambda *_: None)
    with pytest.raises(BadInput, match=f"cannot use {onnx_session.NAMES[device]} on this machine"):
        opener.open(b"", "model", 1)


def test_a_listed_provider_that_the_session_did_not_get_does_not_count(path, monkeypatch):
    real = onnxruntime.InferenceSession
    asked = []

    def session(model, options, providers, **settings):
        asked.append(providers[0] if isinstance(providers[0], str) else providers[0][0])
        return real(model, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: list(onnx_session.PROVIDERS.values()))
    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    assert OnnxWorldModel(path, threads=1).provider == "CPU, 1 threads"
    assert asked == ["CUDAExecutionProvider", "CPUExecutionProvider"]
    with pytest.raises(BadInput, match="cannot use CUDA"):
        OnnxWorldModel(path, device="cuda")


def test_an_unknown_device_or_thread_count_is_refused(path):
    with pytest.raises(BadInput, match="unknown device 'tpu'"):
        OnnxWorldModel(path, device="tpu")
    with pytest.raises(BadInput, match="--threads"):
        OnnxWorldModel(path, threads=0)


def test_loading_and_the_first_plan_take_less_than_two_seconds(tmp_path):
    path = tiny.file(tmp_path, horizon=5, latent=192)  # the compact transformer
    program = f"""
import time
started = time.process_time()
import numpy as np
from agent.world_models.onnx import OnnxWorldModel
from agent.planning import make
from agent.planning.base import Problem
model = OnnxWorldModel({str(path)!r}, device="cpu", threads=1)
latents = model.encode(np.zeros((2, 64, 64, 3), np.uint8))
make("cem")(model, [Problem(latents[:1], np.empty((0, 10)), latents[1], np.random.default_rng(0))])
print(time.process_time() - started)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 2  # processor time of one thread, so that a busy machine does not matter


def test_a_planner_plans_with_it(model):
    latents = model.encode(np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), dtype=np.uint8))
    planner = make("cem", candidates=20, elites=5, iterations=3, horizon=4)
    plan = planner(model, [Problem(latents[:1], np.empty((0, 10)), latents[1], np.random.default_rng(0))])[0]
    assert plan.actions.shape == (4, 10)
    assert plan.latents.shape == (4, 8)
