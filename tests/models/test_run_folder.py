"""Reading a run folder: the network with its weights, its proposals, and what is refused."""

import json

import pytest
import torch

from envs.errors import BadInput
from models.run_folder import last_measured, read_metrics, read_proposals, read_run
from tests import tiny


@pytest.fixture
def folder(tmp_path):
    return tiny.run_folder(tmp_path / "run", components=2)


def change(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def test_a_run_folder_gives_back_the_network_with_its_weights(folder):
    run, made = read_run(folder), tiny.source(components=2)
    assert (run.task, run.preset, run.objective) == ("two-room", "compact-transformer", "qqworld")
    assert (run.step, run.seed) == (7, 0)
    assert (run.data, run.versions, run.encoder_steps) == (made.data, made.versions, 0)
    assert run.model.encoder_fingerprint() == made.model.encoder_fingerprint()
    assert not run.model.training
    assert not any(parameter.requires_grad for parameter in run.model.parameters())


def test_the_look_is_the_datas_and_follows_from_the_size_where_nobody_kept_it(folder):
    assert read_run(folder).look == "fast"
    change(folder, data={"fingerprint": "0", "look": "paper"})
    assert read_run(folder).look == "paper"


def test_proposals_are_read_with_the_run_they_lie_in_or_from_a_folder_of_their_own(folder, tmp_path):
    model = read_run(folder).model
    own = read_proposals(folder, model)
    (folder / "proposals").rename(tmp_path / "elsewhere")
    assert read_proposals(folder, model) is None
    other = read_proposals(folder, model, tmp_path / "elsewhere")
    for name, tensor in tiny.source(components=2).proposals.state_dict().items():
        assert torch.equal(own.state_dict()[name], tensor)
        assert torch.equal(other.state_dict()[name], tensor)


def test_proposals_of_another_encoder_are_refused(folder):
    model = tiny.network(seed=1, **tiny.NETWORK)
    with pytest.raises(BadInput, match="belong to another encoder, of a run at step 7"):
        read_proposals(folder, model)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda folder: (folder / "config.json").unlink(), "is not a run folder"),
        (lambda folder: (folder / "config.json").write_text("[1]"), "is not a run folder"),
        (lambda folder: (folder / "config.json").write_text("{}"), "does not describe a run of this trainer"),
        (lambda folder: change(folder, data=None), "does not describe a run of this trainer"),
        (lambda folder: change(folder, preset="huge"), "unknown preset 'huge'"),
        (lambda folder: change(folder, network=tiny.NETWORK | {"depth": 3}), r"predictor\.blocks\.2\..* is missing"),
        (lambda folder: (folder / "checkpoint.safetensors").unlink(), "has no checkpoint yet"),
        (lambda folder: (folder / "checkpoint.safetensors").write_bytes(b"no"), "is damaged or not a checkpoint"),
    ],
)
def test_what_is_not_a_run_is_refused_in_one_sentence(folder, damage, complaint):
    damage(folder)
    with pytest.raises(BadInput, match=complaint) as refused:
        read_run(folder)
    assert "\n" not in str(refused.value)


def test_metrics_are_its_complete_lines_and_the_last_measurement_is_found_among_them(folder):
    assert (read_metrics(folder), last_measured(folder)) == ([], {})
    lines = ['{"step": 0, "held_out": {"ks": 2}}', '{"step": 5, "held_out": {"ks": 1}}', '{"step": 6, "train": {}}']
    (folder / "metrics.jsonl").write_text("\n".join([*lines, '{"step": 7, "tra']))
    assert [line["step"] for line in read_metrics(folder)] == [0, 5, 6]
    assert last_measured(folder) == {"ks": 1}
