"""RMA, TVT and a value stream of RND's own in the whole system: two remote workers, two learners,
checkpoints, and RLlib's own loop.
"""

import numpy as np
import pytest
import torch
from inside import comparable, differences, flat, on_learners, states, trained_on
from ray.rllib.core.columns import Columns
from runners import runner_of
from tiny import clock_config, plain_config

from rllib_conspec import WholeEpisodePPOConfig
from rllib_conspec.algorithm.policy import LAST
from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.tvt import READS

SMALL = {"core": "rma", "core_options": {"hidden": 8, "width": 8, "units": 8, "reads": 20}}


@pytest.fixture(scope="module")
def team(ray_local):
    config = plain_config(runners=2).learners(num_learners=2, num_gpus_per_learner=0)
    config.rl_module(model_config=SMALL).training(auxiliary={"reconstruct": {}})
    # Heads that were not taught read with about 0.7.
    models = {"tvt": {"threshold": 0.5}, "rnd": {"dim": 8, "own_stream": True}}
    algo = config.rewards(models=models).training(gamma=0.9).build_algo()
    yield algo
    algo.stop()


def policies(algo):
    return on_learners(
        algo, lambda own: flat([own.module.get_state(), own.auxiliary["reconstruct"].state_dict()])
    )


def test_remote_workers_pay_what_the_learner_would(team):
    team.train()
    (learner, _) = on_learners(team, lambda own: own.reward_model)
    episodes, result = trained_on(team)
    paid, total = [], 0.0
    for episode in episodes:
        outputs = {name: episode.get_extra_model_outputs(name) for name in READS}
        rewards = episode.get_rewards()
        seen = Episode(episode.get_observations(), episode.get_actions(), rewards, outputs=outputs)
        (transported,) = learner.models["tvt"].reward([seen])
        total += abs(transported).sum()
        # What is left is the environment's own: nothing or 1, on the last step.
        rest = rewards - transported
        np.testing.assert_allclose(rest, np.round(rest[-1]) * np.eye(len(rest))[-1], atol=1e-5)
        (own,) = learner.models["rnd"].reward([seen])
        np.testing.assert_allclose(episode.get_extra_model_outputs("own_rewards"), own, rtol=1e-4)
        paid.append(transported.sum() + own.sum())
    assert total > 0
    intrinsic = result["env_runners"]["intrinsic_return_mean"]
    assert intrinsic == pytest.approx(np.mean(paid), rel=1e-4)
    assert result["env_runners"]["episode_return_max"] <= 1
    learned = result["learners"]["default_policy"]
    assert learned["own_vf_loss"] > 0 and learned["reconstruct_loss"] > 0


def test_two_learners_stay_equal_and_continue_to_the_digit(team, tmp_path):
    team.train()
    for held in (states(team), policies(team)):
        assert held[0] == held[1]
    team.save_to_path(tmp_path / "checkpoint")
    uninterrupted = comparable(team.train())
    expected = states(team), policies(team)
    team.restore_from_path(tmp_path / "checkpoint")
    different = differences(uninterrupted, comparable(team.train()))
    # Sizes of the learners' shares, of which RLlib's checkpoints hold one learner's.
    assert not {k for k in different if "learner_connector_sum_episodes_length" not in k}
    assert (states(team), policies(team)) == expected


@pytest.mark.parametrize("continuous", [False, True])
def test_rllibs_own_loop_tells_the_core_what_happened(ray_local, continuous):
    """It plays to evaluate: actions must be those that the policy would have learned from."""
    config = clock_config(WholeEpisodePPOConfig, continuous=continuous)
    runner = runner_of(config.rl_module(model_config=SMALL))
    with torch.no_grad():
        runner.module.actor.weight.normal_()
    loops = runner._sample_as_rllib(num_episodes=6, explore=True)
    ours = runner._play_quickly(6)
    for episode in [e.to_numpy() for e in (*loops, *ours)]:
        seen = torch.from_numpy(episode.get_observations()[:-1]).unsqueeze(0)
        happened = runner.module.happened(episode.get_actions(), episode.get_rewards())
        start = {k: s.unsqueeze(0) for k, s in runner.module.get_initial_state().items()}
        batch = {Columns.OBS: seen, Columns.STATE_IN: start, "happened": happened.unsqueeze(0)}
        with torch.no_grad():
            inputs = runner.module._forward_train(batch)[Columns.ACTION_DIST_INPUTS][0]
        stored = episode.get_extra_model_outputs(Columns.ACTION_DIST_INPUTS)
        np.testing.assert_allclose(stored, inputs, rtol=1e-3, atol=1e-3)
    assert runner.module.get_initial_state()[LAST].shape == ((3,) if continuous else (4,))
    assert any(len(e) > 1 for e in loops)
