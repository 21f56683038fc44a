"""What a rollout worker adds to the rewards of episodes, whole or in pieces, and calls success."""

import gc
from unittest.mock import patch

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from ray.rllib.algorithms.dqn import DQN
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from runners import paying, reported, runner_of
from tiny import CONSTANT, Ageless, Clock, keys_config, plain_config

from rllib_conspec import with_reward_model
from rllib_conspec.algorithm import env_runner
from rllib_conspec.episodes import Episode


@pytest.mark.parametrize("intrinsic", ["window", "potential"])
def test_rewards_are_extrinsic_plus_what_the_model_pays(intrinsic):
    runner = paying(runner_of(keys_config(intrinsic=intrinsic, threshold=0.0)))
    episodes = runner.sample()
    report = runner.take_report()
    originals = reported(report)
    paid = 0.0
    for episode, original in zip(episodes, originals, strict=True):
        (expected,) = runner.reward_model.reward([original])
        np.testing.assert_allclose(episode.get_rewards() - original.rewards, expected, atol=1e-6)
        np.testing.assert_array_equal(episode.get_observations(), original.observations)
        paid += np.abs(expected).sum()
    assert paid > 0
    gained = [e.get_return() - o.rewards.sum() for e, o in zip(episodes, originals, strict=True)]
    np.testing.assert_allclose(report.intrinsic_returns, gained, atol=1e-4)
    assert report.version == 17


def test_metrics_see_the_environments_rewards_only():
    """The task pays 0 or 1; intrinsic rewards here are far larger."""
    runner = paying(runner_of(keys_config(threshold=0.0, intrinsic_coeff=100.0)))
    episodes = runner.sample()
    assert max(e.get_return() for e in episodes) > 10
    shown, report = runner.get_metrics(), runner.take_report()
    returns = [s.extrinsic_return for s in report.summaries]
    assert set(returns) <= {0.0, 1.0}
    assert shown["episode_return_mean"].peek() == pytest.approx(np.mean(returns))
    assert shown["episode_return_max"].peek() <= 1.0


@pytest.mark.parametrize("options", [{"intrinsic": "potential"}, {"pay_once": True}, {"window": 9}])
def test_an_episode_in_pieces_is_paid_as_the_whole_of_it(options):
    """A potential that began anew at every cut would pay a state again, and "once an episode" would
    be once a piece.
    """
    runner = paying(runner_of(keys_config(threshold=0.0, **options)))
    pieces = [e for _ in range(9) for e in runner.sample(num_timesteps=60)]
    report = runner.take_report()
    wholes = reported(report)
    assert len(report.summaries) == len(wholes) > 2
    assert [len(e) for e in wholes] == [s.length for s in report.summaries]
    by_episode = {}
    for piece in pieces:
        by_episode.setdefault(piece.id_, []).append(piece)
    assert len(by_episode) == len(wholes), "pieces of an episode that goes on"
    assert all(len(own) > 1 and own[-1].is_done for own in by_episode.values())
    for i, own in enumerate(sorted(by_episode.values(), key=lambda own: pieces.index(own[-1]))):
        whole = wholes[i]
        np.testing.assert_array_equal(
            whole.frames, np.concatenate([e.get_observations()[1:] for e in own])
        )
        gained = np.concatenate([e.get_rewards() for e in own]) - whole.rewards
        (at_once,) = runner.reward_model.reward([whole])
        assert np.abs(at_once).sum() > 0
        np.testing.assert_allclose(gained, at_once, atol=1e-5)
        assert report.intrinsic_returns[i] == pytest.approx(at_once.sum(), abs=1e-4)


@pytest.fixture(scope="module")
def payers():
    """Workers that pay in every form that looks at more than one step, by what they are called."""
    forms = {
        "potential": {"intrinsic": "potential"},
        "once": {"pay_once": True},
        "window": {"window": 9},
    }
    return {n: paying(runner_of(keys_config(threshold=0.0, **o))) for n, o in forms.items()}


@given(
    form=st.sampled_from(["potential", "once", "window"]),
    length=st.integers(1, 40),
    cuts=st.sets(st.integers(1, 39)),
    seed=st.integers(0, 99),
)
def test_wherever_an_episode_is_cut_it_is_paid_as_the_whole(payers, form, length, cuts, seed):
    """Pieces are held until their episode ends: no cut is seen in what is paid."""
    rng, runner = np.random.default_rng(seed), payers[form]
    pictures = rng.integers(0, 256, (length + 1, 5, 5, 3), dtype=np.uint8)
    rewards = rng.normal(size=length).astype(np.float32)
    ends = [*sorted(c for c in cuts if c < length), length]
    paid = []
    for begin, end in zip([0, *ends], ends, strict=False):
        piece = SingleAgentEpisode(
            id_="one",
            observations=list(pictures[begin : end + 1]),
            actions=[0] * (end - begin),
            rewards=list(rewards[begin:end]),
            infos=[{}] * (end - begin + 1),
            terminated=end == length,
            t_started=begin,
            len_lookback_buffer=0,
        ).to_numpy()
        paid.append(runner._pay([piece]).episodes)
    assert not any(paid[:-1]), "given out before its end"
    (whole,) = runner.reward_model.reward([Episode(pictures, np.zeros(length), rewards)])
    gained = np.concatenate([p.get_rewards() for p in paid[-1]]) - rewards
    assert [len(p) for p in paid[-1]] == np.diff([0, *ends]).tolist()
    np.testing.assert_allclose(gained, whole, atol=1e-5)


def test_what_waits_for_its_end_is_given_up_when_the_environments_begin_anew():
    """Whole episodes on demand (evaluation) reset all environments: nobody will end the others."""

    def unfinished():
        gc.collect()
        every = (o for o in gc.get_objects() if type(o) is SingleAgentEpisode)
        return sum(len(e) > 0 and not e.is_done for e in every)

    runner, left = runner_of(dqn_config()), []
    for _ in range(4):
        assert runner.sample(num_timesteps=30) == []
        assert all(len(e) == 20 for e in runner.sample(num_episodes=2))
        left.append(unfinished())
    assert left[-1] <= left[0]


def dqn_config():
    """An algorithm that takes pieces, on episodes of 20 steps."""
    config = with_reward_model(DQN, CONSTANT).get_default_config()
    config.environment(Clock, env_config={"lengths": (20,)})
    return config.env_runners(num_env_runners=0, num_envs_per_env_runner=3)


def test_algorithms_that_take_pieces_get_some_at_every_call():
    """However long episodes are: RLlib learns from nothing else, and counts on as many steps as it
    asked for.
    """
    runner = runner_of(dqn_config().env_runners(rollout_fragment_length=4))
    given = [runner.sample() for _ in range(30)]
    assert [sum(map(len, pieces)) for pieces in given] == [3 * 4] * 30
    by_episode = {}
    for piece in (p for pieces in given for p in pieces):
        by_episode.setdefault(piece.id_, []).append(piece)
    wholes = reported(runner.take_report())
    assert 18 == len(by_episode) <= len(wholes)
    for own, whole in zip(by_episode.values(), wholes, strict=False):
        assert [p.is_done for p in own] == [False] * 4 + [True]
        frames = np.concatenate([p.get_observations()[1:] for p in own])
        np.testing.assert_array_equal(frames, whole.frames)


def test_episodes_that_never_end_are_said(monkeypatch):
    monkeypatch.setattr(env_runner, "ENDLESS", 50)
    runner = runner_of(dqn_config().environment(Ageless, env_config={}))
    with pytest.raises(RuntimeError, match=r"no episode ended within 50 steps.*time limit"):
        runner.sample()


def test_nothing_is_hashed_where_nobody_asks():
    with patch.object(xxhash, "xxh3_64_intdigest", wraps=xxhash.xxh3_64_intdigest) as hashing:
        runner_of(plain_config()).sample()
        assert hashing.call_count == 0
        runner = runner_of(keys_config(threshold=0.0))
        runner.sample()
        assert hashing.call_count == 0, "no prototype pays yet"
        episodes = paying(runner).sample()
        assert hashing.call_count == sum(len(e) + 1 for e in episodes)


def test_without_reward_model_rewards_are_the_environments():
    runner = runner_of(plain_config())
    episodes = runner.sample()
    report = runner.take_report()
    assert report.episodes == []
    assert [e.get_return() for e in episodes] == [s.extrinsic_return for s in report.summaries]
    assert [s.success for s in report.summaries] == [e.get_return() > 0 for e in episodes]


@pytest.mark.parametrize("config", [keys_config, plain_config])
@pytest.mark.parametrize("success", ["sparse", "goal", "top_k", "tiny:reached_fifty"])
def test_success_is_judged_alike_with_and_without_a_reward_model(config, success):
    """The same episodes: no prototype pays yet, so the policies are the same."""
    runner = runner_of(config(success=success))
    episodes = runner.sample()
    expected = {
        "sparse": [e.get_return() > 0 for e in episodes],
        "goal": [bool(e.get_infos(-1)["is_success"]) for e in episodes],
        "top_k": [None] * 8,
        "tiny:reached_fifty": [True] * 8,
    }
    assert [s.success for s in runner.take_report().summaries] == expected[success]


def test_evaluation_is_not_paid_and_not_reported():
    config = keys_config(threshold=0.0)
    config.in_evaluation = True
    runner = paying(runner_of(config))
    episodes = runner.sample(num_episodes=3)
    assert len(episodes) >= 3
    assert {e.get_return() for e in episodes} <= {0.0, 1.0}
    assert runner.take_report().summaries == []
