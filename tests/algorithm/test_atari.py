"""Atari through the whole system: two real iterations of a delayed game."""

import numpy as np
import pytest
from inside import on_learners
from tiny import EAGER

from rllib_conspec import ConSpecConfig, WholeEpisodePPOConfig
from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.algorithm.report import joined
from rllib_conspec.errors import OptionError
from rllib_conspec.recordings import Origin, Recording, save

STEPS, BATCH = 40, 4


def atari_config(config_class=ConSpecConfig, *, delayed=True, **conspec):
    config = (
        config_class()
        .rewards(preset="atari")
        .environment("rllib_conspec:Atari-v0", env_config={"game": "AirRaid", "delayed": delayed})
        .episodes(per_batch=BATCH, max_steps=STEPS)
        .env_runners(num_envs_per_env_runner=2)
        .rl_module(model_config={"encoder_dim": 8})
        .debugging(seed=1)
    )
    return config.conspec(**EAGER | conspec) if config_class is ConSpecConfig else config


def test_two_iterations(built):
    algo = built(atari_config(max_new_successes=1))
    results = [algo.train() for _ in range(2)]
    shown = results[-1]["env_runners"]
    assert shown["num_episodes_lifetime"] == 2 * BATCH
    assert shown["num_env_steps_sampled_lifetime"] == 2 * BATCH * STEPS
    assert shown["episode_return_max"] >= 25  # points, not signs
    assert np.isfinite(results[-1]["conspec"]["loss"])

    def memories(learner):
        memory = learner.reward_model.models["conspec"].learner.memory
        return [[e.unpacked() for e in kind] for kind in (memory.successes, memory.failures)]

    ((won, lost),) = on_learners(algo, memories)
    assert won[-1].observations.shape == (STEPS + 1, 84, 84, 3)
    assert won[-1].observations.dtype == np.uint8
    newest = [float(e.rewards.sum()) for e in lost[-(BATCH - 1) :]]
    assert float(won[-1].rewards.sum()) >= max(newest)
    assert not won[-1].rewards[:-1].any()  # delayed


@pytest.mark.parametrize("delayed", [True, False])
def test_the_policy_learns_from_signs_and_all_else_is_points(delayed):
    config = atari_config(WholeEpisodePPOConfig, delayed=delayed)
    config.validate()
    runner = EpisodeRunner(config=config, worker_index=0, num_workers=0)
    episodes = runner.sample()
    returns = [s.extrinsic_return for s in runner.take_report().summaries]
    assert runner.get_metrics()["episode_return_max"].peek() == max(returns) >= 25
    for episode, points in zip(episodes, returns, strict=True):
        rewards = episode.get_rewards()
        assert set(np.unique(rewards)) <= {0.0, 1.0}
        assert rewards.any() == (points > 0)
        assert not delayed or not rewards[:-1].any()
        assert episode.is_terminated  # nothing is expected beyond the end


def test_demonstrations_are_what_it_starts_from(built, tmp_path):
    config = atari_config(WholeEpisodePPOConfig)
    config.validate()
    runner = EpisodeRunner(config=config, worker_index=0, num_workers=0)
    played = [joined([e], lambda _: True, ()) for e in runner.sample()[:2]]
    facts = config.facts
    origin = Origin.of(facts.plays, facts.version, facts.observation_space, facts.action_space)
    assert origin.plays == "AirRaid" and origin.version.startswith("ale-py ")
    save(tmp_path / "demos", Recording(origin, "", 0, tuple(e.packed() for e in played)))
    paid = atari_config(delayed=False, demonstrations=str(tmp_path / "demos"), min_successes=2)
    paid.rewards(success="tiny:reached_fifty")  # which no episode of 40 steps does
    result = built(paid).train()
    assert result["conspec"]["successes"] == 2 and np.isfinite(result["conspec"]["loss"])
    other = atari_config(demonstrations=str(tmp_path / "demos"))
    other.environment(env_config={"game": "Pong"})
    with pytest.raises(OptionError, match=r"demonstrations: .* is of AirRaid, not of Pong"):
        built(other)
