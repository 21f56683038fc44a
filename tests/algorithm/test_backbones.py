"""ConSpec on other algorithms of RLlib."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from inside import on_learners
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.appo import APPO
from ray.rllib.algorithms.dqn import DQN
from ray.rllib.algorithms.impala import IMPALA
from ray.rllib.algorithms.sac import SAC
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import get_trainable_cls
from tiny import EAGER, KEYS, Clock

import rllib_conspec
from rllib_conspec import with_reward_model

BASES = [APPO, IMPALA, DQN, SAC]


@pytest.mark.parametrize("base", BASES)
def test_names(base):
    """Of Tune, of the package, and in pickles: checkpoints name the classes."""
    name = f"ConSpec{base.__name__}"
    algorithm = getattr(rllib_conspec, name)
    assert get_trainable_cls(name) is algorithm
    config = getattr(rllib_conspec, f"{name}Config")
    assert type(algorithm.get_default_config()) is config
    for thing in (algorithm, config):
        assert pickle.loads(pickle.dumps(thing)) is thing


@pytest.mark.parametrize("base", BASES)
def test_configuration_of_another_algorithm(base):
    algorithm = with_reward_model(base, "conspec")
    assert algorithm is with_reward_model(base, "conspec")
    assert issubclass(algorithm, base)
    config = algorithm.get_default_config()
    assert isinstance(config, type(base.get_default_config()))
    assert config.algo_class is algorithm
    config.rewards(models={"conspec": {"num_prototypes": 5}})
    env = gym.make(KEYS)
    together = config.get_reward_model(env.observation_space, env.action_space)
    assert together.models["conspec"].options.num_prototypes == 5
    # The defaults of the algorithm itself stay.
    for name, value in base.get_default_config().to_dict().items():
        if isinstance(value, (int, float, str)) and name != "env_runner_cls":
            assert config.to_dict()[name] == value, name


def config_of(base, *, success="tiny:good", **conspec):
    """A few seconds' worth of training on classic control."""
    config = with_reward_model(base, "conspec").get_default_config()
    config.environment("Pendulum-v1" if base is SAC else "CartPole-v1")
    config.env_runners(num_env_runners=0, rollout_fragment_length=100).learners(num_learners=0)
    config.reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=500)
    config.training(train_batch_size_per_learner=100).debugging(seed=1)
    config.rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[16]))
    if base in (DQN, SAC):
        config.training(num_steps_sampled_before_learning_starts=200)
    return config.rewards(
        preset="paper",
        success=success,
        models={"conspec": EAGER | {"encoder": "mlp", "threshold": 0.0} | conspec},
        episodes_per_update=4 if success == "top_k" else 2,
    )


def held(algo):
    """(version, successes, failures) of the learner's side."""

    def look(learner):
        model = learner.reward_model.models["conspec"].learner
        return learner.reward_model.version, *model.memory.count

    return on_learners(algo, look)


@pytest.mark.parametrize("base", BASES)
def test_conspec_on_another_algorithm(ray_local, tmp_path, base):
    algo = config_of(base, form="paper").build_algo()
    twin = None
    try:
        # An episode of Pendulum has 200 steps, and asynchronous algorithms do not wait for pay.
        for _ in range(20):
            result = algo.train()
            told = result.get("conspec", {})
            paid = result["env_runners"].get("intrinsic_return_mean", 0)
            if min(told.get("successes", 0), told.get("failures", 0)) > 0 and paid != 0:
                break
        assert paid != 0
        assert np.isfinite(told["loss"])
        assert algo.env_runner.reward_model.version > 0
        if base is not SAC:  # CartPole pays 1 for every step, so any other share would show
            shown = result["env_runners"]
            assert shown["episode_return_mean"] == pytest.approx(shown["episode_len_mean"])

        algo.save_to_path(tmp_path / "checkpoint")
        ((version, successes, failures),) = held(algo)
        if base in (DQN, SAC):  # the others may have learned after what they told last
            assert (told["successes"], told["failures"]) == (successes, failures)
        algo.stop()
        twin = Algorithm.from_checkpoint(tmp_path / "checkpoint")
        assert type(twin) is type(algo)
        assert held(twin) == [(version, successes, failures)]
        assert twin.env_runner.reward_model.version == version
        shown = twin.train()["conspec"]
        assert {"successes", "failures", "frozen", "loss"} <= set(shown)
        assert all(np.isfinite(v) for v in shown.values() if not isinstance(v, dict))
        for _ in range(20):
            if held(twin)[0][0] > version:
                break
            twin.train()
        assert held(twin)[0][0] > version
    finally:
        (twin or algo).stop()


@pytest.mark.parametrize("base", [APPO, DQN])
def test_episodes_far_longer_than_what_is_sampled_at_once(built, base):
    """Intrinsic rewards are those of whole episodes: until one has ended there is nothing to learn
    from.
    """
    config = config_of(base, success="tiny:reached_fifty")
    algo = built(config.environment(Clock, env_config={"lengths": (450,)}))
    for _ in range(20):
        result = algo.train()
        if held(algo)[0][0]:
            break
    assert result["learners"]["default_policy"]["num_module_steps_trained"] > 0
    version, successes, failures = held(algo)[0]
    assert version == 1
    assert successes >= 2
    assert failures == 0


def test_top_k_is_the_best_of_many_where_training_steps_bring_single_episodes(ray_local):
    """SAC finishes about one episode in two training steps: the best of one would be any."""
    algo = config_of(SAC, success="top_k").build_algo()
    for _ in range(2):
        result = algo.train()
    algo.stop()
    assert result["conspec"]["failures"] > 0
