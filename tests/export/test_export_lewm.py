"""Published LeWM checkpoints: 303 tensors under their own names, of both generations of Hugging Face's ViT."""

import json
import pickle

import h5py
import numpy as np
import pytest
import safetensors.torch
import torch

import models
from envs.errors import BadInput
from export.__main__ import Export, export
from export.lewm import read_lewm
from tests import tiny

BLOCK = {
    "transformers 4": (
        "encoder.encoder.layer.{}",
        {
            "query": "attention.attention.query",
            "key": "attention.attention.key",
            "value": "attention.attention.value",
            "out": "attention.output.dense",
            "mlp.0": "intermediate.dense",
            "mlp.2": "output.dense",
        },
    ),
    "transformers 5": (
        "encoder.layers.{}",
        {
            "query": "attention.q_proj",
            "key": "attention.k_proj",
            "value": "attention.v_proj",
            "out": "attention.o_proj",
            "mlp.0": "mlp.fc1",
            "mlp.2": "mlp.fc2",
        },
    ),
}
"""Names of the parts of a ViT block, written out: ours to theirs."""


def published(model: models.WorldModel, generation: str = "transformers 4") -> dict[str, torch.Tensor]:
    """The state dict that LeWM publishes for this network."""
    block, parts = BLOCK[generation]
    renamed = {
        "encoder.patches": "encoder.embeddings.patch_embeddings.projection",
        "encoder.class_token": "encoder.embeddings.cls_token",
        "encoder.position": "encoder.embeddings.position_embeddings",
        "encoder.norm": "encoder.layernorm",
        "action_encoder.squeeze": "action_encoder.patch_embed",
        "predictor.position": "predictor.pos_embedding",
        "predictor.norm": "predictor.transformer.norm",
    }
    for head in ("projector", "pred_proj"):
        renamed |= {f"{head}.{index}": f"{head}.net.{index}" for index in range(4)}
    for number in range(12):
        theirs = block.format(number)
        renamed |= {f"encoder.blocks.{number}.{our}": f"{theirs}.{their}" for our, their in parts.items()}
        renamed[f"encoder.blocks.{number}.norm1"] = f"{theirs}.layernorm_before"
        renamed[f"encoder.blocks.{number}.norm2"] = f"{theirs}.layernorm_after"
    for number in range(6):
        ours, theirs = f"predictor.blocks.{number}", f"predictor.transformer.layers.{number}"
        renamed[f"{ours}.attention.norm"] = f"{theirs}.attn.norm"
        renamed[f"{ours}.attention.qkv"] = f"{theirs}.attn.to_qkv"
        renamed[f"{ours}.attention.out.0"] = f"{theirs}.attn.to_out.0"
        renamed[f"{ours}.modulation.1"] = f"{theirs}.adaLN_modulation.1"
        renamed |= {f"{ours}.mlp.{index}": f"{theirs}.mlp.net.{index}" for index in (0, 1, 4)}
    tensors = {}
    for name, tensor in model.state_dict().items():
        stem, _, kind = name.rpartition(".")
        if name in renamed:
            tensors[renamed[name]] = tensor
        elif stem in renamed or stem.startswith("action_encoder"):
            tensors[f"{renamed.get(stem, stem)}.{kind}"] = tensor
    squeeze = "action_encoder.patch_embed.weight"
    tensors[squeeze] = tensors[squeeze].unsqueeze(-1)  # theirs is a convolution
    return tensors


@pytest.fixture(scope="module")
def network() -> models.WorldModel:
    return tiny.network("paper")


@pytest.mark.parametrize("generation", BLOCK)
@pytest.mark.parametrize("form", ["weights.pt", "model.safetensors", "lightning.ckpt"])
def test_a_published_checkpoint_becomes_the_paper_network(generation, form, network, tmp_path):
    tensors = published(network, generation)
    assert len(tensors) == 303
    if form == "weights.pt":
        torch.save(tensors, tmp_path / form)
    elif form == "lightning.ckpt":
        torch.save({"state_dict": {f"model.{name}": tensor for name, tensor in tensors.items()}}, tmp_path / form)
    else:
        safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, tmp_path / form)

    source = read_lewm(tmp_path, "pusht")

    assert source.model.action_std.tolist() == pytest.approx([0.2019, 0.2002])
    own = ("action_mean", "action_std")
    for name, tensor in source.model.state_dict().items():
        if name not in own:
            torch.testing.assert_close(tensor, network.state_dict()[name], rtol=0, atol=0)


def test_a_checkpoint_that_does_not_fit_lists_what_is_missing_extra_and_misshapen(network, tmp_path):
    tensors = published(network)
    del tensors["encoder.layernorm.bias"]
    tensors["decoder.weight"] = torch.zeros(1)
    tensors["predictor.transformer.layers.3.attn.to_qkv.weight"] = torch.zeros(5, 192)
    torch.save(tensors, tmp_path / "weights.pt")
    with pytest.raises(BadInput) as refused:
        read_lewm(tmp_path / "weights.pt", "pusht")
    assert "encoder.layernorm.bias is missing" in str(refused.value)
    assert "decoder.weight is not part of LeWM" in str(refused.value)
    assert "predictor.transformer.layers.3.attn.to_qkv.weight has shape (5, 192), not (3072, 192)" in str(refused.value)


def test_a_checkpoint_of_another_task_is_refused_by_the_size_of_its_actions(network, tmp_path):
    torch.save(published(network), tmp_path / "weights.pt")
    with pytest.raises(BadInput, match=r"action_encoder\.patch_embed\.weight has shape \(10, 10, 1\), not \(10, 25\)"):
        read_lewm(tmp_path, "cube", data=None)


def test_a_config_that_describes_another_network_is_refused(network, tmp_path):
    torch.save(published(network), tmp_path / "weights.pt")
    (tmp_path / "config.json").write_text(json.dumps({"predictor": {"heads": 8, "dim_head": 128}}))
    with pytest.raises(BadInput, match=r"predictor\.heads is 8, not 16"):
        read_lewm(tmp_path, "pusht")


def test_action_statistics_come_from_the_dataset_where_they_are_not_published(network, tmp_path):
    torch.save(published(network), tmp_path / "weights.pt")
    with pytest.raises(BadInput, match="give --data"):
        read_lewm(tmp_path, "two-room")
    actions = np.random.default_rng(0).normal([0.3, -0.1], [0.5, 0.2], (4000, 2)).astype(np.float32)
    actions[::100] = np.nan  # the rows at which episodes end
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["action"] = actions
    source = read_lewm(tmp_path, "two-room", tmp_path / "data.h5")
    np.testing.assert_allclose(source.model.action_mean, [0.3, -0.1], atol=0.03)
    np.testing.assert_allclose(source.model.action_std, [0.5, 0.2], atol=0.03)


def test_a_dataset_of_another_task_is_refused_in_one_sentence(network, tmp_path):
    torch.save(published(network), tmp_path / "weights.pt")
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["action"] = np.zeros((10, 5), np.float32)
    with pytest.raises(BadInput, match="have 5 numbers, but those of two-room have 2"):
        read_lewm(tmp_path, "two-room", tmp_path / "data.h5")
    with pytest.raises(BadInput, match=r"there is no data file .*nowhere\.h5"):
        read_lewm(tmp_path, "two-room", tmp_path / "nowhere.h5")


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_pickle_with_code_in_it_is_refused_and_not_run(tmp_path):
    (tmp_path / "weights.pt").write_bytes(pickle.dumps({"a": Trap(tmp_path / "sprung")}, protocol=2))
    torch.save({"a": Trap(tmp_path / "sprung")}, tmp_path / "zip.pt")
    for name in ("weights.pt", "zip.pt"):
        with pytest.raises(BadInput, match="cannot be read as plain weights"):
            read_lewm(tmp_path / name, "pusht")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 cut"])
@pytest.mark.parametrize("name", ["weights.pt", "model.safetensors"])
def test_a_file_that_is_no_checkpoint_is_refused_in_one_sentence(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match="cannot be read as plain weights"):
        read_lewm(tmp_path, "pusht")


def test_a_folder_without_weights_or_with_too_many_is_refused(tmp_path):
    with pytest.raises(BadInput, match="holds 0 files of weights"):
        read_lewm(tmp_path, "pusht")
    for name in ("a.pt", "b.safetensors"):
        (tmp_path / name).touch()
    with pytest.raises(BadInput, match="holds 2 files of weights"):
        export(Export(out=tmp_path / "out.onnx", from_lewm=tmp_path, env="pusht"))
