"""What is sampled from a replay buffer is paid by a snapshot that is new enough."""

import numpy as np
import pytest
from ray.rllib.algorithms.dqn import DQN
from ray.rllib.algorithms.sac import SAC
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.replay_buffers import EpisodeReplayBuffer, PrioritizedEpisodeReplayBuffer
from tiny import CONSTANT, KEYS, RISING, Clock

from rllib_conspec import ConSpecAPPOConfig, ConSpecDQNConfig, with_reward_model
from rllib_conspec.algorithm.paying import with_reward
from rllib_conspec.algorithm.replay import Replayed
from rllib_conspec.errors import OptionError

BUFFERS = [EpisodeReplayBuffer, PrioritizedEpisodeReplayBuffer]
LENGTH = 6


def config_of(model=RISING, base=DQN, age=1, **options):
    config = with_reward_model(base, model).get_default_config()
    config.environment(Clock, env_config={"lengths": (LENGTH,), "continuous": base is SAC})
    config.env_runners(num_env_runners=0, num_envs_per_env_runner=2, rollout_fragment_length=4)
    config.learners(num_learners=0).debugging(seed=1)
    config.reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=48)
    config.training(train_batch_size_per_learner=16, num_steps_sampled_before_learning_starts=8)
    config.training(replay_buffer_config={"capacity": 10_000})
    config.rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[8]))
    return config.rewards(models={model: options}, episodes_per_update=4, max_pay_age=age)


def replayed(age=1, scale=1.0):
    config = config_of(age=age).rewards(reward_scale=scale)
    env = Clock(lengths=(LENGTH,))
    return Replayed(config.get_reward_model(env.observation_space, env.action_space), config)


def snapshot(version, pays=None):
    return {"version": version, "models": {RISING: version if pays is None else pays}}


def own_rewards(number):
    """The environment's, of an episode: no two steps are paid alike."""
    return 100.0 * number + np.arange(1, LENGTH + 1)


def pieces(number, cuts=(), version=0, scale=1.0):
    """An episode as a worker gives it out, paid by a snapshot of this version."""
    own, ends = own_rewards(number), [*cuts, LENGTH]
    return [
        with_reward(
            SingleAgentEpisode(
                id_=f"episode {number}",
                observations=list(np.full((end - begin + 1, 4), number, np.float32)),
                actions=[0] * (end - begin),
                rewards=list(own[begin:end]),
                infos=[{}] * (end - begin + 1),
                terminated=end == LENGTH,
                t_started=begin,
                len_lookback_buffer=0,
            ).to_numpy(),
            scale,
            (version * own[begin:end]).astype(np.float32),
            version,
        )
        for begin, end in zip([0, *ends], ends, strict=False)
    ]


def filled(buffer_class, payer, *episodes):
    buffer = buffer_class(capacity=1000)
    payer.watch(buffer)
    for own in episodes:
        for piece in own:
            buffer.add([piece])
    return buffer


def sampled(buffer, count=64):
    """{(number of the episode, step): reward} of what is sampled."""
    drawn = buffer.sample(num_items=count, n_step=1, sample_episodes=True, lookback=0)
    return {(int(e.get_observations(0)[0]), e.t_started): float(e.get_rewards(0)) for e in drawn}


@pytest.mark.parametrize("buffer_class", BUFFERS)
@pytest.mark.parametrize("scale", [1.0, 0.5, "sign"])
def test_what_is_sampled_is_paid_by_the_newest_snapshot(buffer_class, scale):
    payer = replayed(scale=scale)
    buffer = filled(buffer_class, payer, *(pieces(n, (2, 5), scale=scale) for n in range(3)))
    for version in (0, 1, 4):
        if version:
            payer.load(snapshot(version))
        found = sampled(buffer)
        assert len(found) > 10
        for (number, step), reward in found.items():
            own = own_rewards(number)[step]
            scaled = np.sign(own) if scale == "sign" else scale * own
            assert reward == pytest.approx(scaled + version * own, rel=1e-6)


@pytest.mark.parametrize("buffer_class", BUFFERS)
def test_only_pay_that_is_too_old_changes(buffer_class):
    payer = replayed(age=3)
    buffer = filled(buffer_class, payer, pieces(0), pieces(1, version=2))
    payer.load(snapshot(3))
    found = sampled(buffer)
    # Three versions old, and one.
    assert found[0, 3] == pytest.approx(4 * own_rewards(0)[3])
    assert found[1, 3] == pytest.approx(3 * own_rewards(1)[3])
    payer.load(snapshot(5))
    found = sampled(buffer)
    assert found[0, 3] == pytest.approx(4 * own_rewards(0)[3]), "paid again only two versions ago"
    assert found[1, 3] == pytest.approx(6 * own_rewards(1)[3])


def test_nothing_is_computed_where_snapshots_pay_alike():
    payer = replayed()
    buffer = filled(EpisodeReplayBuffer, payer, pieces(0, version=1))
    payer.load(snapshot(1, pays=7))
    payer.load(snapshot(9, pays=7))
    sampled(buffer)
    assert payer.take_seconds() == 0
    payer.load(snapshot(10, pays=8))
    assert sampled(buffer)[0, 0] == pytest.approx(9 * own_rewards(0)[0])
    assert payer.take_seconds() > 0
    assert payer.take_seconds() == 0


def test_parts_of_an_episode_keep_their_pay():
    payer = replayed()
    going_on, headless = pieces(0, (4,))[:1], pieces(1, (4,))[1:]
    buffer = filled(EpisodeReplayBuffer, payer, going_on, headless)
    payer.load(snapshot(1))
    found = sampled(buffer)
    assert {number for number, _ in found} == {0, 1}
    for (number, step), reward in found.items():
        step += 4 * number  # counted from where the buffer's part begins
        assert reward == pytest.approx(own_rewards(number)[step])
    buffer.add(pieces(0, (4,))[1:])
    assert sampled(buffer)[0, 1] == pytest.approx(2 * own_rewards(0)[1]), "its end has come"


@pytest.mark.parametrize("buffer_class", BUFFERS)
def test_a_buffer_that_was_saved_goes_on(buffer_class):
    payer = replayed(age=2)
    buffer = filled(buffer_class, payer, pieces(0), pieces(1, version=1))
    twin = buffer_class(capacity=1000)
    twin.set_state(buffer.get_state())
    payer.watch(twin)
    payer.load(snapshot(2))
    found = sampled(twin)
    assert found[0, 2] == pytest.approx(3 * own_rewards(0)[2])
    assert found[1, 2] == pytest.approx(2 * own_rewards(1)[2])


def stored_pay(algo):
    """Pay per step of every whole episode in the buffer, oldest first, looked at or not."""
    return [
        e.get_rewards().mean() - e.get_extra_model_outputs("environment_rewards").mean()
        for e in tuple(algo.local_replay_buffer.episodes)
        if e.is_done
    ]


@pytest.mark.parametrize("base", [DQN, SAC])
def test_episodes_of_before_the_first_update_are_paid_when_they_are_learned_from(built, base):
    algo = built(config_of(CONSTANT, base, step=5.0))
    for _ in range(3):
        result = algo.train()
    assert result["constant"]["nested"]["updates"] > 1
    assert algo.local_replay_buffer.get_num_episodes_evicted() == 0
    sampled(algo.local_replay_buffer, 500)
    assert stored_pay(algo) == pytest.approx([5.0] * len(stored_pay(algo)))
    assert result["seconds"]["replay"] >= 0
    # Returns that people see are the environment's.
    assert result["env_runners"]["episode_return_mean"] > 100


def test_the_pay_of_its_time_stays_by_default_of_none(built):
    algo = built(config_of(CONSTANT, age=None, step=5.0))
    for _ in range(3):
        result = algo.train()
    assert "replay" not in result["seconds"]
    first = algo.local_replay_buffer.episodes[0]
    assert "environment_rewards" not in first.extra_model_outputs
    assert first.get_rewards()[0] == first.get_rewards()[1] - 1, "nothing was paid besides"
    assert algo.env_runner.reward_model.version > 1


def test_the_same_seed_draws_the_same(built):
    one, other = (built(config_of(CONSTANT, step=5.0)) for _ in range(2))
    for _ in range(2):
        one.train(), other.train()
    assert sampled(one.local_replay_buffer).keys() == sampled(other.local_replay_buffer).keys()


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "newest"])
def test_ages_that_are_none(value):
    config = ConSpecDQNConfig().environment(KEYS).rewards(max_pay_age=value)
    with pytest.raises(OptionError, match="must be a whole number of at least 1") as raised:
        config.validate()
    assert raised.value.option == "max_pay_age"


def test_an_algorithm_without_a_replay_buffer():
    config = ConSpecAPPOConfig().environment(KEYS).rewards(max_pay_age=1)
    with pytest.raises(OptionError, match="replay buffer") as raised:
        config.validate()
    assert raised.value.option == "max_pay_age"
