"""The inverse head: actions that two latents tell apart are recovered, and its gradient reaches the encoder."""

import dataclasses

import pytest
import torch

from envs.errors import BadInput
from tests.training.runs import go, same_run, tensors
from training.objectives import make
from training.phases.inverse_head import Inverse
from training.phases.learner import Learner
from training.phases.trainer import build

pytestmark = pytest.mark.usefixtures("quick")


def test_it_recovers_actions_that_the_latents_show_and_not_those_that_they_hide():
    torch.manual_seed(0)
    actions = torch.randn(512, 3, 2)
    steps = torch.zeros_like(actions).index_copy_(2, torch.tensor([0]), actions[..., :1])  # the second number is hidden
    latents = torch.cat([torch.zeros(512, 1, 2), steps[:, :-1].cumsum(1)], dim=1)
    head = Inverse(2, 2, width=64)
    optimiser = torch.optim.Adam(head.parameters(), 3e-3)
    for _ in range(300):
        optimiser.zero_grad()
        head(latents, actions).backward()
        optimiser.step()
    # Of three pairs of frames, two are neighbours and show the first number whole; one is a sum of two.
    hidden, halved = 1.0, 0.5 / 3
    assert head(latents, actions).item() == pytest.approx((hidden + halved) / 2, abs=0.08)


def test_every_pair_of_frames_counts():
    head = Inverse(4, 2, width=8)
    latents, actions = torch.randn(3, 4, 4), torch.randn(3, 4, 2)
    wanted = []
    for first in range(4):
        for last in range(first + 1, 4):
            apart = torch.full((3, 1), float(last - first))
            guess = head.network(torch.cat([latents[:, first], latents[:, last], apart], dim=1))
            wanted.append((guess - actions[:, first]).square().mean())
    torch.testing.assert_close(head(latents, actions), torch.stack(wanted).mean())


def test_it_is_one_more_weighted_term_whose_gradient_reaches_the_latents():
    model = build("compact", 2, {"latent": 8, "history": 3, "dropout": 0.0})
    plain, taught = (Learner(model, make("none", latent=8), inverse=weight) for weight in (0.0, 0.5))
    latents, actions = torch.randn(2, 4, 8, requires_grad=True), torch.randn(2, 4, 10)
    without, with_it = (learner(latents, actions, torch.Generator()) for learner in (plain, taught))
    assert "inverse" not in without.terms
    torch.testing.assert_close(with_it.total, without.total + 0.5 * with_it.terms["inverse"])
    assert torch.autograd.grad(with_it.terms["inverse"], latents)[0].abs().max() > 0


def test_a_run_with_it_resumes_as_the_same_run_and_its_model_has_no_head(trained, tmp_path):
    config = dataclasses.replace(trained, inverse=1.0, schedule=6, log_every=3, eval_every=3)
    go(dataclasses.replace(config, out=tmp_path / "whole"))
    for steps in (3, 6):
        go(dataclasses.replace(config, out=tmp_path / "parts", steps=steps))
    same_run(tmp_path / "whole", tmp_path / "parts")
    before, after = tensors(trained.out), tensors(tmp_path / "whole")
    assert before.keys() == after.keys()
    assert not all(torch.equal(before[name], after[name]) for name in before if name.startswith("model.encoder."))


@pytest.mark.parametrize("changes", [{"inverse": -1.0}, {"inverse": 1.0, "encoder_from": "run"}])
def test_where_it_makes_no_sense_it_is_refused(trained, changes):
    with pytest.raises(BadInput, match="--inverse is not negative, and teaches the encoder"):
        dataclasses.replace(trained, **changes).check()
