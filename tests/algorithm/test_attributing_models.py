"""RUDDER, SynthRs and RRD in the whole system: two remote workers, two learners, checkpoints.

Processes are started once. They are then told to use another model, as if they had been made so.
"""

import numpy as np
import pytest
from inside import comparable, differences, on_learners, states, trained_on
from tiny import plain_config

from rllib_conspec.episodes import Episode

SMALL = {"encoder_dim": 8, "dim": 8}
# All pay after the first batch whose returns differ.
MODELS = {
    "rudder": {**SMALL, "target": 1e6, "steps": 2, "lessons": 8},
    "synthrs": {**SMALL, "alpha": 0.5},
    "rrd": {**SMALL, "drawn": 16, "steps": 2},
}
BUSY = {"rudder": {"target": 1e-6}, "synthrs": {}, "rrd": {}}


@pytest.fixture(scope="module")
def team(ray_local):
    config = plain_config(runners=2).learners(num_learners=2, num_gpus_per_learner=0)
    algo = config.rewards(models={"rnd": {"dim": 8}}, reward_scale=0.5).build_algo()
    yield algo
    algo.stop()


def use(algo, name, **options):
    """Everybody has this model from now on, and begins anew with it."""
    models = {name: MODELS[name] | options}

    def made(owner):
        config = owner.config.copy(copy_frozen=False)
        config.reward_models = models
        space = config.facts.observation_space, config.facts.action_space
        return config.get_reward_model(*space)

    def on_worker(runner):
        runner.reward_model, runner.snapshot = made(runner), None

    def on_learner(learner):
        learner.reward_model = made(learner)

    algo._reward_model = made(algo)
    algo.env_runner_group.foreach_env_runner(on_worker)
    on_learners(algo, on_learner)
    algo._news = {}  # what was said before is not true any more
    return algo


def on_first_learner(algo, function):
    return on_learners(algo, lambda learner: function(learner.reward_model))[0]


def until_it_pays(algo, name):
    for _ in range(8):
        result = algo.train()
        if on_first_learner(algo, lambda own, name=name: own.models[name].paying):
            return result
    pytest.fail("no returns that differ in 8 batches")


@pytest.mark.parametrize("name", MODELS)
def test_remote_workers_pay_what_the_learner_would(team, name):
    algo = use(team, name)
    until_it_pays(algo, name)
    learner = on_first_learner(algo, lambda own: own)  # a copy, as it is before the update
    episodes, result = trained_on(algo)
    assert len(episodes) == 8
    given = [e.get_rewards().sum() for e in episodes]
    assert all(paid_by(learner, e) for e in episodes)
    own = result["env_runners"]["success_rate"] * 0.5  # the environment's share, as it is scaled
    intrinsic = result["env_runners"]["intrinsic_return_mean"]
    assert intrinsic == pytest.approx(np.mean(given) - own, abs=1e-4)
    assert result["env_runners"]["episode_return_max"] <= 1
    if name == "rudder":  # returns are kept
        assert abs(intrinsic) < 1e-4
    else:
        assert abs(intrinsic) > 1e-3


def paid_by(learner, episode):
    """Whether its rewards are what this learner would have the policy get. The task itself pays
    only on the last step: nothing or 1.
    """
    for last in (0.0, 1.0):
        own = np.zeros(len(episode), np.float32)
        own[-1] = last
        seen = Episode(episode.get_observations(), episode.get_actions(), own)
        (extra,) = learner.reward([seen])
        if np.allclose(own * 0.5 + extra, episode.get_rewards(), atol=1e-4):
            return True
    return False


@pytest.mark.parametrize("name", MODELS)
def test_two_learners_stay_equal_and_continue_to_the_digit(team, name, tmp_path):
    algo = use(team, name, **BUSY[name])
    for _ in range(3):
        algo.train()
    a, b = states(algo)
    assert a == b
    assert any(f"/{name}/networks" in path for path in a)
    algo.save_to_path(tmp_path / "checkpoint")
    uninterrupted = comparable(algo.train())
    expected = states(algo)
    assert expected[0] != a
    algo.restore_from_path(tmp_path / "checkpoint")
    assert states(algo) == [a, b]
    different = differences(uninterrupted, comparable(algo.train()))
    # Sizes of the learners' shares, of which RLlib's checkpoints hold one learner's.
    assert not {k for k in different if "learner_connector_sum_episodes_length" not in k}
    assert states(algo) == expected
