"""Learner and worker in this process: what is learned, and what the policy is shown in a game."""

import numpy as np
import pytest
import torch
from planted_game import STEPS, coins_config
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_conspec.algorithm.decision_transformer.algorithm import played
from rllib_conspec.algorithm.decision_transformer.policy import Context
from rllib_conspec.algorithm.decision_transformer.windows import ACTIONS, LENGTH, RETURNS
from rllib_conspec.algorithm.decision_transformer.windows import STEPS as STEP
from rllib_conspec.algorithm.env_runner import EpisodeRunner, News


def made(config):
    """Learner and worker as RLlib makes them."""
    config.validate()
    config.freeze()
    facts = config.facts
    spaces = {DEFAULT_MODULE_ID: (facts.observation_space, facts.action_space)}
    torch.manual_seed(0)
    learner = config.build_learner(spaces=spaces)
    return learner, EpisodeRunner(config=config, worker_index=0, num_workers=0)


def learn(learner, updates):
    return learner.update(training_data=TrainingData(data_iterators=[None]), num_iters=updates)


def returns_of(runner, learner, asked, count=4):
    """Returns of what is played when so much is asked for."""
    runner._env_to_module[0]._target = asked
    found = []
    for position in range(count):
        news = {"weights": News(position + 1, learner.weights())}
        ((_, _, report),) = played(runner, position, news, seed=position)
        found += [s.extrinsic_return for s in report.summaries]
    return found


def test_it_plays_at_the_return_that_it_is_asked_for(recording):
    """From episodes of chance, whose returns are all over the place. Before it has learned it does
    not: the control.
    """
    learner, runner = made(coins_config(recording))
    asked = (1, 2, 4, 5)  # 0 and 6 came up in one of 64 episodes
    before = np.array([returns_of(runner, learner, a, count=1) for a in asked])
    learn(learner, 250)
    after = np.array([returns_of(runner, learner, a, count=2) for a in asked])
    goal = np.array(asked)[:, None]
    assert np.abs(before - goal).mean() > 1.0
    assert np.abs(after - goal).mean() < 0.35
    assert runner.config.target == 6.0


def test_the_policy_is_shown_the_last_steps_and_what_is_still_asked_for():
    context = Context(context=3, target=5.0, lessens=True)
    episode = SingleAgentEpisode()
    episode.add_env_reset(np.array([0.0, 0.0]))
    rewards = (1.0, 0.0, 2.0, 1.0)
    for t, reward in enumerate(rewards):
        if t < 2:  # fewer steps than it can be shown
            shown = context._window(episode)
            assert shown[LENGTH] == t + 1
            assert shown[Columns.OBS][:, 0].tolist() == [*range(t + 1), *[0] * (2 - t)]
        episode.add_env_step(np.array([t + 1.0, 0.0]), t % 2, reward)
    shown = context._window(episode)
    assert shown[LENGTH] == 3
    assert shown[Columns.OBS][:, 0].tolist() == [2, 3, 4]
    assert shown[STEP].tolist() == [2, 3, 4]
    assert shown[ACTIONS][:2].tolist() == [0, 1]
    assert shown[RETURNS].tolist() == [5 - 1, 5 - 3, 5 - 4]
    constant = Context(context=3, target=1.0, lessens=False)
    assert constant._window(episode)[RETURNS].tolist() == [1, 1, 1]


def test_a_learner_that_is_restored_draws_and_learns_the_same(recording):
    learner, _ = made(coins_config(recording))
    learn(learner, 3)
    state = learner.get_state()
    uninterrupted = learn(learner, 5)
    other, _ = made(coins_config(recording))
    other.set_state(state)
    continued = learn(other, 5)
    for name in ("total_loss", "action_accuracy"):
        a, b = (r[DEFAULT_MODULE_ID][name].peek() for r in (uninterrupted, continued))
        assert float(a) == float(b)
    mine, its = (x.module[DEFAULT_MODULE_ID].get_state() for x in (learner, other))
    assert all(np.array_equal(mine[k], its[k]) for k in mine)


def test_the_network_is_that_of_the_settings(recording):
    config = coins_config(recording, heads=4, dropout=0.25, weight_decay=0.5)
    learner, _ = made(config)
    transformer = learner.module[DEFAULT_MODULE_ID].transformer
    assert (len(transformer.blocks), transformer.blocks[0].heads) == (1, 4)
    assert transformer.blocks[0].dropout == 0.25
    assert transformer.steps.weight.shape == (STEPS, 32)
    (optimizer,) = (o for _, o in learner.get_optimizers_for_module(DEFAULT_MODULE_ID))
    (group,) = optimizer.param_groups
    assert isinstance(optimizer, torch.optim.AdamW)
    assert (group["weight_decay"], group["lr"]) == (0.5, pytest.approx(3e-3))
