"""Agents: one contract for those that plan and those that do not, and plans for several at once."""

import numpy as np
import pytest

import envs
from agent import planning as planners
from agent.episodes.agents import ModelAgent, context_of, plan_together
from agent.episodes.baselines import RULES, RuleAgent
from agent.episodes.realtime import RealtimeAgent
from envs import BadInput
from tests.analytic_world import PointWorld

SMALL = {"candidates": 16, "iterations": 2, "elites": 4, "keep": 2, "cost": "sum"}


@pytest.fixture(scope="module")
def task():
    return envs.make("two-room")


def looking(agent, task, pair=0):
    """The agent before its first action."""
    agent.begin(task, seed=0, pair=pair)
    agent.aim(np.array([60.0, 60.0]))
    agent.see(0, np.array([50.0 + pair, 50.0]))
    return agent


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_no_model_no_planner_and_makes_no_plans(task, name):
    agent = looking(RuleAgent(name), task)
    plan_together([agent])
    assert (agent.model, agent.planner, agent.planning, agent.new_plan_ms) == (None, None, False, None)
    assert agent.act().shape == (2,)


@pytest.mark.parametrize("kind", [ModelAgent, RealtimeAgent])
def test_agents_that_plan_say_what_with(kind):
    model, planner = PointWorld(), planners.make("cem", **SMALL)
    agent = kind(model, planner)
    assert (agent.model, agent.planner, agent.planning) == (model, planner, True)


def test_all_plans_that_are_due_come_from_one_call_of_the_planner(task):
    calls = []

    class Counting(type(planners.make("cem"))):
        def __call__(self, model, problems, deadline=None):
            calls.append(len(problems))
            return super().__call__(model, problems, deadline)

    agents = [looking(ModelAgent(PointWorld(), Counting(**SMALL)), task, pair) for pair in range(3)]
    agents[1].planning = False
    plan_together([*agents, looking(RuleAgent("zero"), task)])
    assert calls == [2]
    assert [agent.new_plan_ms is not None for agent in agents] == [True, False, True]

    plan_together(agents)
    assert calls == [2]  # nothing is due before a block has been carried out


def test_context_ends_where_a_step_passed_unseen():
    seen = [np.array([float(step)]) if step % 2 == 0 and step != 4 else None for step in range(11)]
    actions = [np.full(2, step) for step in range(10)]
    context, past = context_of(PointWorld(block=2), 4, seen, actions)
    np.testing.assert_array_equal(context, [[6], [8], [10]])
    np.testing.assert_array_equal(past, [[6, 6, 7, 7], [8, 8, 9, 9]])


def test_a_planner_that_needs_proposals_is_refused_by_a_model_without_them():
    class Silent(PointWorld):
        proposes = False

    with pytest.raises(BadInput, match="planner propose needs a model with proposals"):
        ModelAgent(Silent(), planners.make("propose"))
