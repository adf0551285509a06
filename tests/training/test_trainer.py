"""The trainer learns: scales, schedule, the learner's arithmetic, and every objective."""

import dataclasses
import inspect

import numpy as np
import pytest
import torch

import models
from tests.training.runs import TINY, metrics
from training.config import Regulariser
from training.data.windows import action_scale, split
from training.objectives import OBJECTIVES, make
from training.phases.learner import Learner
from training.phases.trainer import Trainer

pytestmark = pytest.mark.usefixtures("quick")


def test_actions_are_scaled_with_the_training_episodes_alone(config):
    trainer = Trainer(config)
    mean, std = action_scale(trainer.data, split(trainer.data)[0])
    np.testing.assert_array_equal(trainer.learner.model.action_mean, mean)
    np.testing.assert_array_equal(trainer.learner.model.action_std, std)
    assert not np.array_equal(mean, action_scale(trainer.data, np.arange(12))[0])


def test_the_learning_rate_warms_up_and_follows_a_cosine_whose_length_is_not_the_stop_step(config):
    trainer = Trainer(dataclasses.replace(config, steps=10, schedule=100, warmup=0.1, lr=1.0))
    rates = [trainer.lr(step) for step in range(1, 101)]
    assert rates[:10] == pytest.approx([step / 10 for step in range(1, 11)])
    assert rates[54] == pytest.approx(0.5, abs=0.01)
    assert rates[99] == pytest.approx(0)


@pytest.mark.parametrize(("open_loop", "forcing"), [(False, True), (True, True), (True, False)])
def test_the_learner_predicts_the_next_latents_from_the_true_ones_and_open_loop_from_the_first(open_loop, forcing):
    torch.manual_seed(0)
    model = models.build(
        "compact", action_dim=2, **{k: v for k, v in dataclasses.asdict(TINY).items() if v is not None}
    )
    torch.nn.init.normal_(model.pred_proj.weight, std=0.1)  # it begins with "nothing changes"
    learner = Learner(model, make("none", latent=16), open_loop, forcing).eval()
    pixels, actions = torch.randint(0, 255, (3, 4, 32, 32, 3), dtype=torch.uint8), torch.randn(3, 4, 10)
    latents = model.encode(pixels)
    predicted = model.predict(latents[:, :3], actions[:, :3])
    error = (predicted - latents[:, 1:]).square().mean()
    if open_loop:
        rolled = model.rollout(latents[:, :1], actions[:, :0], actions[:, :3])
        assert not torch.equal(rolled, predicted)
        of_rolled = (rolled - latents[:, 1:]).square().mean()
        error = (error + of_rolled) / 2 if forcing else of_rolled
    loss = learner(pixels, actions, torch.Generator())
    torch.testing.assert_close(loss.total, error)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_trains(config, name):
    projects = "directions" in inspect.signature(OBJECTIVES[name]).parameters
    trainer = Trainer(
        dataclasses.replace(
            config,
            objective=name,
            regulariser=Regulariser(directions=32) if projects else Regulariser(),
            network=dataclasses.replace(TINY, latent=32),  # sub-jepa has 32 subspaces
            steps=2,
        )
    )
    before = {key: value.clone() for key, value in trainer.learner.model.named_parameters()}

    trainer.run(bar=False)

    assert trainer.step == 2
    for key, value in trainer.learner.model.named_parameters():
        assert value.isfinite().all(), key
    assert not torch.equal(trainer.learner.model.projector[0].weight, before["projector.0.weight"])
    logged = next(line["train"] for line in metrics(config.out) if "train" in line)
    assert logged.keys() >= {"prediction", *trainer.learner.objective.weights}


def test_without_a_regulariser_the_latents_collapse_and_the_alarm_says_what_to_do(config):
    said = []
    alone = dataclasses.replace(
        config, objective="none", regulariser=Regulariser(), steps=150, schedule=150, eval_every=150, lr=3e-3
    )
    measured = Trainer(alone, said.append).run(bar=False)
    assert measured["std_mean"] < 0.05
    assert "raise the regulariser's --weight" in said[0]
