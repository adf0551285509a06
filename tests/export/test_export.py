"""Export: the file computes what torch computes, computes nothing twice, and appears only when it is right."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import models
from agent.world_models import file as model_file
from agent.world_models.file import graph
from agent.world_models.onnx import OnnxWorldModel
from envs.errors import BadInput
from export import parity
from export.__main__ import Export, export
from export.package import package
from export.source import read_run
from export.work import naive_multiply_adds
from tests import tiny

Pair = tuple[models.WorldModel, OnnxWorldModel]


def both(folder: Path, preset: str, **settings) -> Pair:
    """A preset's network with random weights: torch and file."""
    source = tiny.source(preset, **settings)
    path = folder / f"{preset}.onnx"
    path.write_bytes(package(source, 5, np.float32, {}, "MIT"))
    return source.model, OnnxWorldModel(path, device="cpu", threads=1)


@pytest.fixture(scope="module")
def paper(tmp_path_factory) -> Pair:
    return both(tmp_path_factory.mktemp("paper"), "paper")


@pytest.fixture(scope="module")
def transformer(tmp_path_factory) -> Pair:
    return both(tmp_path_factory.mktemp("transformer"), "compact-transformer", latent=192)


@pytest.fixture(scope="module")
def compact(tmp_path_factory) -> Pair:
    """What is shipped."""
    return both(tmp_path_factory.mktemp("compact"), "compact", latent=48)


@pytest.mark.parametrize("which", ["compact", "transformer"])
def test_a_compact_file_does_what_torch_does_and_finds_the_same_elites(which, request):
    report = parity.compare(*request.getfixturevalue(which), tolerance=1e-4)
    assert report.passed, report.lines()
    assert report.same_elites
    assert {"encode, 32 random pictures", "encode, 8 pictures of two-room"} <= report.errors.keys()
    lengths, batches = (1, 2, 3), [(1, 1), (2, 1), (2, 2), (300, 1), (300, 300)]
    for what in ("rollout", "one block"):
        expected = {f"{what} from {c}, {n} candidates, {k} contexts" for c in lengths for n, k in batches}
        assert expected <= report.errors.keys()


def test_the_paper_file_does_what_torch_does_and_finds_the_same_elites(paper):
    report = parity.compare(*paper, tolerance=1e-4, batches=(1, 2, 5))
    assert report.passed, report.lines()
    assert report.same_elites


def test_parity_notices_a_difference(transformer):
    network, file = transformer
    other = tiny.network(latent=192)
    with torch.no_grad():
        other.pred_proj.bias += 1e-3
    assert parity.compare(network, file, 1e-4, batches=(2,)).passed
    report = parity.compare(other, file, 1e-4, batches=(2,))
    assert not report.passed
    assert report.worst == pytest.approx(5e-3, rel=0.5)  # the change adds up over five steps


@pytest.mark.parametrize(
    "settings",
    [
        {"history": 1},
        {"history": 4, "depth": 1},
        {"latent": 12, "action_block": 3},  # the predictor's width is not the latent's
        {"residual": False, "activation": "silu"},
        {"stem": 4, "channels": (4,), "activation": "relu"},
        {"encoder": "moments", "stem": 4, "channels": (4, 6)},
        {"predictor": "markov", "history": 1, "depth": 3},
        {"predictor": "markov", "history": 1, "depth": 1, "residual": False},
        {"predictor": "markov", "history": 3, "depth": 2},
    ],
)
def test_every_shape_of_the_compact_networks_can_be_exported(settings, tmp_path):
    network = tiny.NETWORK | settings
    file = OnnxWorldModel(tiny.file(tmp_path, **network), device="cpu")
    report = parity.compare(tiny.network(**network), file, 1e-5, batches=(3,))
    assert report.passed, report.lines()


@pytest.mark.parametrize("which", ["compact", "transformer", "paper"])
def test_no_operator_of_a_rollout_is_computed_twice(which, request):
    _, file = request.getfixturevalue(which)
    for length in (1, 2, 3):
        part = graph.entry_point(file._file.model, f"latents_{length}").graph
        done = Counter(
            (node.op_type, tuple(node.input), tuple(a.SerializeToString() for a in node.attribute))
            for node in part.node
        )
        assert max(done.values()) == 1
        weights = Counter((tuple(weight.dims), weight.raw_data) for weight in part.initializer)
        assert max(weights.values()) == 1


def test_the_action_encoder_runs_once_for_all_blocks(transformer):
    model, file = transformer
    part = graph.entry_point(file._file.model, "latents_1").graph
    first = model.action_encoder.embed[0].weight.detach().numpy().tobytes()
    name = next(weight.name for weight in part.initializer if weight.raw_data == first)
    assert sum(name in node.input for node in part.node) == 1


def tokens_and_rest(width: int, inner: int, mlp: int, depth: int, head: int, actions: int) -> int:
    """Multiply-adds of 5 blocks from one latent if nothing is done twice: a window grows to 3 tokens and slides twice.

    The first token of a window needs no query. In the last block of a slid window, tokens that are not read need keys
    and values only.
    """
    key_value, query, rest = 2 * width * inner, width * inner, inner * width + 2 * width * mlp
    first, later = key_value + rest, key_value + query + rest
    grown = depth * (first + 2 * later)
    slid = (depth - 1) * (first + 2 * later) + 2 * key_value + later
    return grown + 2 * slid + 5 * (head + depth * 6 * width * width + actions)


def test_the_compact_transformers_rollout_takes_the_fewest_multiply_adds(transformer):
    model, file = transformer
    fewest = tokens_and_rest(192, 192, 768, depth=2, head=192 * 192, actions=10 * 192 + 192 * 192)
    assert file.multiply_adds("latents_1") == fewest
    assert naive_multiply_adds(model, 5) > 1.8 * fewest


def test_the_paper_rollout_takes_the_fewest_multiply_adds(paper):
    model, file = paper
    head, actions = 2 * 192 * 2048, 10 * 10 + 10 * 768 + 768 * 192
    fewest = tokens_and_rest(192, 1024, 2048, depth=6, head=head, actions=actions)
    assert file.multiply_adds("latents_1") == fewest
    assert naive_multiply_adds(model, 5) > 1.5 * fewest


def test_tokens_of_a_shared_context_are_not_repeated_for_every_candidate(transformer):
    _, file = transformer
    model, about = file._file.model, file.metadata
    one, hundred = (graph.measure(model, "latents_3", about, n).multiply_adds for n in (1, 100))
    assert hundred < 83 * one  # of 15 tokens, 3 belong to the context alone


def test_the_file_is_plain_onnx_without_traces_of_the_machine_that_made_it(compact):
    _, file = compact
    model = file._file.model
    onnx.checker.check_model(model, full_check=True)
    kinds = {node.op_type for node in model.graph.node}
    assert not kinds & {"If", "Loop", "Scan"}
    assert not model.functions
    assert {imported.domain for imported in model.opset_import} == {""}
    for thing in (model, model.graph, *model.graph.node, *model.graph.initializer):
        assert not thing.doc_string
    assert not any(node.metadata_props for node in model.graph.node)
    assert [entry.key for entry in model.metadata_props] == ["qqworld", "sha256"]


def test_the_same_network_gives_the_same_bytes():
    assert tiny.content() == tiny.content()
    assert tiny.content() != tiny.content(seed=1)


def test_a_network_with_an_unknown_part_is_refused_in_one_sentence():
    source = tiny.source()
    source.model.projector.append(torch.nn.Tanh())
    with pytest.raises(BadInput, match="a Tanh cannot be exported"):
        package(source, 3, np.float32, {}, "MIT")


def test_the_command_writes_file_and_card(tmp_path):
    run, out = tiny.run_folder(tmp_path / "run"), tmp_path / "models" / "tiny.onnx"
    command = [
        sys.executable,
        "-m",
        "export",
        "--run",
        run,
        "--out",
        out,
        "--planner",
        "cem",
        "--plan",
        "candidates=50",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    file = OnnxWorldModel(out, device="cpu")
    assert file.planner == {"name": "cem", "candidates": 50}
    assert (file.metadata.steps, file.metadata.data, file.metadata.look) == (7, "0123456789abcdef", "fast")
    card = out.with_suffix(".md").read_text()
    assert file.sha256 in card
    assert "same elites in the same order" in card
    assert card in done.stdout
    assert sorted(path.name for path in out.parent.iterdir()) == ["tiny.md", "tiny.onnx"]


def test_the_look_is_that_of_the_data_and_guessed_only_where_a_run_does_not_say(tmp_path):
    run = tiny.run_folder(tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    for said, look in (("paper", "paper"), ("fast", "fast"), (None, "fast")):
        (run / "config.json").write_text(json.dumps(config | {"data": config["data"] | {"look": said}}))
        assert read_run(run).look == look
    del config["data"]["look"]
    (run / "config.json").write_text(json.dumps(config))
    assert read_run(run).look == "fast"


def test_a_file_that_differs_from_torch_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setitem(parity.TOLERANCE, "float32", 0.0)
    out = tmp_path / "models" / "tiny.onnx"
    with pytest.raises(BadInput, match="nothing was written"):
        export(Export(out=out, run=tiny.run_folder(tmp_path / "run")))
    assert list(out.parent.iterdir()) == []


def test_half_precision_halves_the_weights_and_reports_what_it_costs(tmp_path):
    full, half = (len(tiny.content(dtype, latent=192)) for dtype in (np.float32, np.float16))
    assert half < 0.55 * full
    out = export(Export(out=tmp_path / "half.onnx", run=tiny.run_folder(tmp_path / "run"), fp16=True))
    assert "float16" in out.with_suffix(".md").read_text()
    latents = OnnxWorldModel(tmp_path / "half.onnx", device="cpu").encode(np.zeros((1, 16, 16, 3), np.uint8))
    assert latents.dtype == np.float32


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "give --env, a task, --run, a run folder, or --from-lewm"),
        ({"run": "run", "from_lewm": "x.pt"}, "either --run"),
        ({"run": "nowhere"}, "nowhere is not a run folder"),
        ({"run": "run", "planner": "chess"}, "unknown planner 'chess'"),
        ({"run": "run", "horizon": 0}, "horizon 0"),
        ({"from_lewm": "x.pt"}, "give --env"),
    ],
)
def test_what_cannot_be_exported_is_refused_in_one_sentence(settings, complaint, tmp_path):
    tiny.run_folder(tmp_path / "run")
    paths = {name: tmp_path / settings[name] for name in ("run", "from_lewm") if name in settings}
    with pytest.raises(BadInput, match=complaint):
        export(Export(out=tmp_path / "out.onnx", **settings | paths))


def test_a_checkpoint_that_does_not_fit_lists_what_is_missing_and_extra(tmp_path):
    run = tiny.run_folder(tmp_path / "run")
    config = run / "config.json"
    config.write_text(config.read_text().replace('"depth": 2', '"depth": 3'))
    with pytest.raises(BadInput, match=r"predictor\.blocks\.2\.attention\.out\.0\.bias is missing"):
        export(Export(out=tmp_path / "out.onnx", run=run))


def test_a_damaged_run_folder_is_refused_in_one_sentence(tmp_path):
    run = tiny.run_folder(tmp_path / "run")
    (run / "checkpoint.safetensors").write_bytes(b"nonsense")
    with pytest.raises(BadInput, match="damaged or not a checkpoint"):
        export(Export(out=tmp_path / "out.onnx", run=run))
    (run / "config.json").write_text("{}")
    with pytest.raises(BadInput, match="does not describe a run"):
        export(Export(out=tmp_path / "out.onnx", run=run))


def test_reading_the_file_needs_neither_torch_nor_the_exporter(tmp_path):
    path = tiny.file(tmp_path)
    program = f"""
import sys
from agent.world_models.onnx import OnnxWorldModel
import numpy as np
model = OnnxWorldModel({str(path)!r}, device="cpu")
latent = model.encode(np.zeros((1, 16, 16, 3), np.uint8))
model.rollout(latent[None], np.zeros((1, 0, 10)), np.zeros((2, 4, 10)))
print(sorted({{"torch", "onnxscript", "models", "export", "training"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_metadata_written_is_metadata_read():
    file = model_file.parse_file(tiny.content())
    assert file.metadata.network == tiny.source().network | {"channels": [4, 8]}
    assert file.metadata.action_mean == pytest.approx([0.1, -0.2])
