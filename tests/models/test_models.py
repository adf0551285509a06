"""The networks: their sizes, shapes, causality and the normalisers inside them."""

import pytest
import torch
from torch import nn

import models
from models.markov import Markov
from models.moments import MomentsEncoder
from models.vit import Block as ViTBlock

torch.set_num_threads(1)  # the test workers already share the cores


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.fixture(scope="module")
def paper() -> models.WorldModel:
    torch.manual_seed(0)
    return models.build("paper", action_dim=2).eval()


COMPACT = ["compact", "compact-transformer"]


def opened(preset: str) -> models.WorldModel:
    """A network whose gates and head, which start at zero, are open, so that a test can see through."""
    torch.manual_seed(0)
    model = models.build(preset, action_dim=2)
    for parameter in model.parameters():
        parameter.data += 0.02 * torch.randn_like(parameter)
    return model.eval()


@pytest.fixture(params=COMPACT)
def compact(request) -> models.WorldModel:
    return opened(request.param)


def test_the_paper_preset_has_lewms_parameters_part_by_part(paper):
    parts = {name: count(part) for name, part in paper.named_children()}
    assert parts == {
        "encoder": 5_501_376,
        "projector": 792_768,
        "action_encoder": 156_206,
        "predictor": 10_791_360,
        "pred_proj": 792_768,
    }
    assert count(paper) == 18_034_478


def test_the_paper_preset_has_lewms_303_tensors_and_four_normalisers_of_its_own(paper):
    own = {"pixel_mean", "pixel_std", "action_mean", "action_std"}
    tensors = {name: tensor for name, tensor in paper.state_dict().items() if name not in own}
    assert len(tensors) == 303
    assert sum(tensor.numel() for tensor in tensors.values()) == 18_042_672


def test_the_paper_preset_grows_by_150_parameters_for_a_five_dimensional_action():
    assert count(models.build("paper", action_dim=5)) == 18_034_628


@pytest.mark.parametrize("preset", COMPACT)
@pytest.mark.parametrize("action_dim", [2, 5])
def test_the_compact_presets_stay_below_three_million_parameters(preset, action_dim):
    assert count(models.build(preset, action_dim=action_dim)) <= 3_000_000


def test_the_compact_preset_is_the_network_that_is_shipped():
    shipped = models.build("compact", action_dim=2)
    assert isinstance(shipped.encoder, MomentsEncoder)
    assert isinstance(shipped.predictor, Markov)
    assert models.settings("compact")["latent"] == 48
    named = models.settings("compact-transformer")
    assert (named["encoder"], named["predictor"], named["latent"]) == ("strides", "transformer", 192)


@pytest.mark.parametrize("preset", models.PRESETS)
def test_pictures_and_raw_actions_go_in_and_latents_come_out(preset):
    model = models.build(preset, action_dim=3).eval()
    side, size = model.image_size, models.settings(preset)["latent"]
    frames = torch.randint(0, 256, (2, 3, side, side, 3), dtype=torch.uint8)
    latents = model.encode(frames)
    assert latents.shape == (2, 3, size)
    torch.testing.assert_close(model.encode(frames[:, 1]), latents[:, 1], rtol=1e-4, atol=1e-4)
    assert model.predict(latents, torch.randn(2, 3, 15)).shape == (2, 3, size)
    assert model.rollout(latents[:1, :2], torch.randn(1, 1, 15), torch.randn(4, 5, 15)).shape == (4, 5, size)


@pytest.mark.parametrize("preset", models.PRESETS)
def test_nothing_normalises_the_latents_on_the_way_out(preset):
    projector = models.build(preset, action_dim=2).projector
    assert isinstance(projector[-1], nn.Linear)


def test_a_vit_block_is_the_standard_pre_norm_transformer_block():
    torch.manual_seed(0)
    ours = ViTBlock(width=24, heads=3, mlp=48).eval()
    theirs = nn.TransformerEncoderLayer(24, 3, 48, 0.0, "gelu", 1e-12, batch_first=True, norm_first=True).eval()
    theirs.load_state_dict(
        {
            "self_attn.in_proj_weight": torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]),
            "self_attn.in_proj_bias": torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]),
            **{f"self_attn.out_proj.{name}": tensor for name, tensor in ours.out.state_dict().items()},
            **{f"linear1.{name}": tensor for name, tensor in ours.mlp[0].state_dict().items()},
            **{f"linear2.{name}": tensor for name, tensor in ours.mlp[2].state_dict().items()},
            **{f"norm1.{name}": tensor for name, tensor in ours.norm1.state_dict().items()},
            **{f"norm2.{name}": tensor for name, tensor in ours.norm2.state_dict().items()},
        }
    )
    tokens = torch.randn(2, 7, 24)
    torch.testing.assert_close(ours(tokens), theirs(tokens), rtol=1e-5, atol=1e-5)


def test_pixels_are_normalised_with_the_imagenet_statistics(compact):
    seen = []
    compact.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    compact.encode(torch.full((1, 64, 64, 3), 255, dtype=torch.uint8))
    expected = (1 - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor([0.229, 0.224, 0.225])
    torch.testing.assert_close(seen[0][0, :, 5, 5], expected)
    assert seen[0].is_contiguous(memory_format=torch.channels_last)


def test_actions_are_z_scored_with_one_mean_and_std_per_raw_dimension(compact):
    compact.set_action_scale(torch.tensor([1.0, -2.0]), torch.tensor([2.0, 4.0]))
    block = torch.tensor([[3.0, 2.0] * 5])
    torch.testing.assert_close(compact.normalise_actions(block), torch.ones(1, 10))


@pytest.mark.parametrize("preset", models.PRESETS)
def test_a_prediction_never_looks_at_later_latents_or_actions(preset, paper):
    model = paper if preset == "paper" else opened(preset)
    for block in getattr(model.predictor, "blocks", ()):
        nn.init.normal_(block.modulation[1].weight, std=0.05)
    latents, actions = torch.randn(2, 3, model.latent), torch.randn(2, 3, 10)
    before = model.predict(latents, actions)
    latents[:, 2] += 1
    actions[:, 2] += 1
    after = model.predict(latents, actions)
    torch.testing.assert_close(after[:, :2], before[:, :2])
    assert not torch.allclose(after[:, 2], before[:, 2], atol=1e-3)


@pytest.mark.parametrize("preset", COMPACT)
def test_a_compact_predictor_starts_as_nothing_changes_and_its_head_gives_the_change(preset):
    model = models.build(preset, action_dim=2).eval()
    latents, actions = torch.randn(2, 3, model.latent), torch.randn(2, 3, 10)
    torch.testing.assert_close(model.predict(latents, actions), latents)
    nn.init.ones_(model.pred_proj.bias)
    torch.testing.assert_close(model.predict(latents, actions), latents + 1)


def test_the_markov_predictor_looks_at_one_step_and_starts_as_nothing_changes():
    model = models.build("compact", action_dim=2, predictor="markov", history=1).eval()
    latents, actions = torch.randn(2, 1, model.latent), torch.randn(2, 1, 10)
    torch.testing.assert_close(model.predict(latents, actions), latents)

    nn.init.normal_(model.pred_proj.weight)
    steps, blocks = torch.randn(2, 4, model.latent), torch.randn(2, 4, 10)
    alone = [model.predict(steps[:, [t]], blocks[:, [t]]) for t in range(4)]
    torch.testing.assert_close(model.predict(steps, blocks), torch.cat(alone, dim=1), rtol=1e-4, atol=1e-4)


def test_a_markov_predictor_with_a_longer_history_takes_what_it_did_not_see_to_have_stood_still():
    model = models.build("compact", action_dim=2, predictor="markov", history=2).eval()
    nn.init.normal_(model.pred_proj.weight)
    model.set_action_scale(torch.tensor([0.5, -0.5]), torch.tensor([2.0, 3.0]))
    latents, actions = torch.randn(2, 2, model.latent), torch.randn(2, 2, 10)
    both = model.predict(latents, actions)

    torch.testing.assert_close(model.predict(latents, actions, newest=True), both[:, 1:])
    still = torch.tensor([0.5, -0.5]).repeat(5).expand(2, 1, 10)  # the mean action
    standing = model.predict(latents[:, [0, 0]], torch.cat([still, actions[:, :1]], dim=1))
    torch.testing.assert_close(standing[:, 1], both[:, 0])
    assert not torch.allclose(model.predict(latents[:, 1:], actions[:, 1:]), both[:, 1:], atol=1e-3)


def test_the_paper_predictor_gives_the_next_latent_itself(paper):
    zeroed = models.build("paper", action_dim=2).eval()
    nn.init.zeros_(zeroed.pred_proj[-1].weight)
    nn.init.ones_(zeroed.pred_proj[-1].bias)
    torch.testing.assert_close(zeroed.predict(torch.randn(2, 3, 192), torch.randn(2, 3, 10)), torch.ones(2, 3, 192))


@pytest.mark.parametrize(("preset", "rate"), [("paper", 0.1), ("compact-transformer", 0.1), ("compact", 0.0)])
def test_both_transformers_keep_lewms_dropout_of_a_tenth_and_the_plain_predictor_has_none(preset, rate):
    model = models.build(preset, action_dim=2)
    assert {module.p for module in model.predictor.modules() if isinstance(module, nn.Dropout)} == {rate}


@pytest.mark.parametrize("seen", [1, 2, 3])
def test_a_rollout_feeds_each_step_the_last_three_latents_and_their_actions(compact, seen):
    context, past, plans = torch.randn(1, seen, compact.latent), torch.randn(1, seen - 1, 10), torch.randn(2, 5, 10)
    rolled = compact.rollout(context, past, plans)

    for plan, latents in zip(plans, rolled, strict=True):
        history, blocks = list(context[0]), list(past[0])
        for block in plan:
            blocks.append(block)
            window = torch.stack(history[-3:])[None], torch.stack(blocks[-3:])[None]
            history.append(compact.predict(*window)[0, -1])
        torch.testing.assert_close(latents, torch.stack(history[seen:]), rtol=1e-4, atol=1e-5)


def test_a_batch_of_contexts_rolls_out_row_by_row(compact):
    context, plans = torch.randn(3, 1, compact.latent), torch.randn(3, 5, 10)
    together = compact.rollout(context, torch.empty(3, 0, 10), plans)
    alone = compact.rollout(context[1:2], torch.empty(1, 0, 10), plans[1:2])
    torch.testing.assert_close(together[1:2], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("preset", COMPACT)
def test_settings_of_a_preset_can_be_changed_and_rebuild_the_same_network(preset):
    chosen = models.settings(preset, latent=32, channels=(8, 16, 32, 64), depth=1)
    model = models.build(preset, action_dim=2, **chosen).eval()
    assert model.encode(torch.zeros(1, 64, 64, 3, dtype=torch.uint8)).shape == (1, 32)
    assert chosen == models.settings(preset, **chosen)


def test_a_network_from_before_the_names_changed_is_still_the_same():
    named = models.settings("compact-transformer")
    old, new = (models.build(preset, action_dim=2, **named) for preset in ("compact", "compact-transformer"))
    assert {k: v.shape for k, v in old.state_dict().items()} == {k: v.shape for k, v in new.state_dict().items()}


@pytest.mark.parametrize(
    ("preset", "changes", "complaint"),
    [
        ("huge", {}, "unknown preset 'huge'"),
        ("paper", {"channels": (8,)}, "no setting 'channels'"),
        ("compact", {"image_size": 50}, "50 px and width 512 do not divide"),
        ("compact-transformer", {"image_size": 50}, "50 px and width 192 do not divide"),
        ("paper", {"image_size": 64}, "not a multiple of 14"),
    ],
)
def test_a_network_that_cannot_be_is_refused_in_one_sentence(preset, changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        models.build(preset, action_dim=2, **changes)
