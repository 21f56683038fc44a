"""The rollout worker by itself: its share of episodes, what it pays, what it reports."""

import gc
import hashlib
from unittest.mock import patch

import numpy as np
import pytest
import ray
import torch
from hypothesis import given
from hypothesis import strategies as st
from ray.rllib.algorithms.dqn import DQN
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from tiny import CONSTANT, Ageless, Clock, Parts, clock_config, keys_config, plain_config

from rllib_conspec import WholeEpisodePPOConfig, with_reward_model
from rllib_conspec.algorithm import env_runner
from rllib_conspec.algorithm.env_runner import COMPONENT_SNAPSHOT, EpisodeRunner, News
from rllib_conspec.algorithm.report import episodes_at, fetched
from rllib_conspec.episodes import Episode

NOTHING_NEW = {}


def runner_of(config, index=0):
    """A worker as RLlib makes one, but in this process."""
    config = config.copy(copy_frozen=False)
    config.validate()
    config.freeze()
    return EpisodeRunner(config=config, worker_index=index, num_workers=config.num_env_runners)


def paying(runner, pays=(0, 2)):
    """The worker, with a snapshot in which these prototypes met the criterion."""
    spaces = runner.get_spaces()["__env_single__"]
    together = runner.config.get_reward_model(*spaces)
    together.models["conspec"].learner.met[list(pays)] = True
    together.version = 17
    runner.load(together.snapshot())
    return runner


def reported(report):
    """The episodes behind a report, as reward models see them: with the environment's rewards."""
    return [episode for _, episode in episodes_at((None, p) for p in report.episodes)]


# --- shares -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workers", "shares"), [(1, [8]), (2, [4, 4]), (3, [3, 3, 2])])
def test_workers_share_the_batch(ray_local, workers, shares):
    runners = [runner_of(keys_config(runners=workers), i + 1) for i in range(workers)]
    assert [len(r.sample()) for r in runners] == shares
    # The next batch is whole again: nothing is carried over.
    assert [len(r.sample()) for r in runners] == shares


def test_more_workers_than_episodes(ray_local):
    config = keys_config(runners=9)
    assert [len(runner_of(config, i).sample()) for i in (1, 8, 9)] == [1, 1, 0]


def test_local_worker_plays_the_whole_batch():
    assert len(runner_of(keys_config()).sample()) == 8


@pytest.mark.parametrize("learners", [0, 1, 3])
def test_a_batch_is_dealt_out_to_the_learners(learners):
    runner = runner_of(keys_config().learners(num_learners=learners))
    ((shares, metrics, report),) = runner.sample_shares(0, NOTHING_NEW)
    assert [len(s.rl) for s in shares] == {0: [8], 1: [8], 3: [3, 3, 2]}[learners]
    assert metrics["num_episodes"].peek() == 8
    # In the order of the summaries, wherever they are.
    assert [len(e) for e in reported(report)] == [s.length for s in report.summaries]
    for share in shares:
        for rl, episode in zip(share.rl, share.episodes, strict=True):
            np.testing.assert_array_equal(rl.get_observations(), episode.observations)


def test_several_batches_in_one_go(ray_local):
    """Each with its own metrics and report; together what one play of all environments gives."""
    config = clock_config(runners=2).env_runners(num_envs_per_env_runner=8)
    runner = runner_of(config, index=2)
    parts = runner.sample_shares(0, NOTHING_NEW, batches=3)
    assert len(parts) == 3
    played = []
    for (share,), metrics, report in parts:
        episodes = fetched(share).rl
        assert len(episodes) == len(report.summaries) == len(reported(report)) == 4
        assert [len(e) for e in episodes] == [s.length for s in report.summaries]
        assert metrics["num_episodes"].peek() == 4
        assert metrics["num_env_steps_sampled"].peek() == sum(map(len, episodes))
        assert metrics["episode_len_mean"].peek() == np.mean([len(e) for e in episodes])
        assert report.sample_seconds > 0
        played += episodes
    (((share,), _, _),) = runner_of(config.episodes(per_batch=24), index=2).sample_shares(
        0, NOTHING_NEW
    )
    np.testing.assert_array_equal(frames(played), frames(fetched(share).rl))


def test_rllibs_own_loop_plays_one_batch_at_a_time():
    runner = runner_of(clock_config().callbacks(callbacks_class=Counting))
    assert len(runner.sample_shares(0, NOTHING_NEW, batches=3)) == 1


@pytest.mark.parametrize("quick", [True, False])
def test_exact_number_of_whole_episodes_whatever_their_lengths(quick):
    config = clock_config(WholeEpisodePPOConfig)
    if not quick:
        config.callbacks(callbacks_class=Counting)
    runner = runner_of(config)
    for _ in range(10):
        episodes = runner.sample()
        assert len(episodes) == 8
        assert all(e.is_done for e in episodes)
        assert all(len(e) == e.get_observations(0)[2] for e in episodes)


@pytest.mark.parametrize("quick", [True, False])
def test_broken_episodes_are_counted_and_nothing_else_sees_them(quick):
    config = clock_config(lengths=(2, 3, 20), drop_at=5)
    if not quick:
        config.callbacks(callbacks_class=Counting)
    runner = runner_of(config)
    dropped = 0
    for _ in range(5):
        episodes = runner.sample()
        assert all(len(e) in (2, 3) for e in episodes)
        shown = runner.get_metrics()
        assert shown["episode_len_max"].peek() <= 3
        assert shown["num_episodes"].peek() >= len(episodes)
        report = runner.take_report()
        assert len(report.summaries) == len(episodes)
        assert all(s.length in (2, 3) for s in report.summaries)
        dropped += report.dropped
    assert dropped > 0


def test_metrics_count_every_step_and_episode():
    runner = runner_of(keys_config())
    episodes = runner.sample()
    results = runner.get_metrics()
    assert results["num_episodes"].peek() == 8
    assert results["num_env_steps_sampled"].peek() == sum(len(e) for e in episodes)
    assert results["episode_len_mean"].peek() == np.mean([len(e) for e in episodes])


# --- environments -------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [Ageless, "tiny:Ageless"])
def test_the_longest_episode_is_a_real_limit(env):
    config = clock_config(env=env).episodes(max_steps=7)
    episodes = runner_of(config).sample()
    assert [len(e) for e in episodes] == [7] * 8
    assert all(e.is_truncated and not e.is_terminated for e in episodes)


def test_an_environment_by_its_import_path_is_the_same_as_by_its_class():
    by_class, by_path = (
        runner_of(clock_config(env=env, lengths=(2, 3))).sample() for env in (Clock, "tiny:Clock")
    )
    np.testing.assert_array_equal(frames(by_class), frames(by_path))
    assert {len(e) for e in by_path} == {2, 3}


def test_dict_observations_are_one_vector():
    whole, parts = (runner_of(clock_config(env=env)).sample() for env in (Clock, Parts))
    np.testing.assert_array_equal(frames(whole), frames(parts))


def test_one_entry_of_dict_observations_if_asked_for():
    config = clock_config(env=Parts).episodes(observation_key="works")
    for episode in runner_of(config).sample():
        assert episode.get_observations().shape == (len(episode) + 1, 2)
        assert (episode.get_observations()[:, 0] == len(episode)).all()


@pytest.mark.parametrize("quick", [True, False])
def test_what_a_plain_environment_marks_is_told_with_its_episodes(quick):
    config = clock_config()
    if not quick:
        config.callbacks(callbacks_class=Counting)
    runner = runner_of(config)
    runner.sample()
    lengths = set()
    for episode in reported(runner.take_report()):
        expected = [(t, f"strikes {(t + 1) // 5}") for t in (4, 9, 14, 19) if t < len(episode)]
        assert list(episode.events) == expected
        lengths.add(len(episode))
    assert 20 in lengths


def test_an_episode_can_be_played_again_from_its_seed_and_actions():
    runner = runner_of(clock_config())
    runner.sample()
    for episode in reported(runner.take_report()):
        env = Clock()
        seen = [env.reset(seed=episode.seed)[0], *(env.step(a)[0] for a in episode.actions)]
        # The first number counts the episodes of one environment.
        np.testing.assert_array_equal(np.array(seen)[:, 1:], episode.observations[:, 1:])


# --- seeds --------------------------------------------------------------------------------------


def frames(episodes):
    return np.concatenate([e.get_observations() for e in episodes])


def played_at(runner, position):
    ((shares, _, _),) = runner.sample_shares(position, NOTHING_NEW)
    return frames(fetched(shares[0]).rl)


def test_what_is_played_depends_on_seed_worker_and_position(ray_local):
    def played(seed=1, index=1, position=0):
        return played_at(runner_of(plain_config(runners=2, seed=seed), index), position)

    first = played()
    np.testing.assert_array_equal(first, played())
    for other in (played(seed=2), played(index=2), played(position=1)):
        assert first.shape != other.shape or not np.array_equal(first, other)


def test_what_was_played_before_does_not_matter():
    """Position in training, not history, decides: that is what makes a restored run equal."""
    runner = runner_of(plain_config())
    first, _, again = (played_at(runner, position) for position in (520, 0, 520))
    np.testing.assert_array_equal(first, again)


def test_without_a_seed_batches_differ():
    runner = runner_of(plain_config(seed=None))
    a, b = frames(runner.sample()), frames(runner.sample())
    assert a.shape != b.shape or not np.array_equal(a, b)


# --- intrinsic rewards --------------------------------------------------------------------------


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


def test_a_report_is_given_once():
    runner = runner_of(keys_config())
    runner.sample()
    first, second = runner.take_report(), runner.take_report()
    assert len(first.summaries) == len(first.episodes) == 8
    assert first.sample_seconds > 0
    assert second.summaries == second.episodes == []
    assert second.sample_seconds == 0


def test_a_remote_worker_reports_references(ray_local):
    """Frames stay in the store until a learner wants them, and are there once."""
    runner = runner_of(keys_config(runners=1), index=1)
    ((shares, _, report),) = runner.sample_shares(0, NOTHING_NEW)
    assert all(isinstance(p.share, ray.ObjectRef) for p in report.episodes)
    assert {p.share for p in report.episodes} == set(shares)
    (share,) = map(ray.get, shares)
    for rl, episode in zip(share.rl, share.episodes, strict=True):
        assert np.shares_memory(rl.observations.data, episode.observations)


def test_frames_are_copied_once_in_the_worker():
    runner = runner_of(keys_config())
    (((share,), _, _),) = runner.sample_shares(0, NOTHING_NEW)
    for rl, episode in zip(share.rl, share.episodes, strict=True):
        assert rl.observations.data is episode.observations
    assert len({id(e.observations.base) for e in share.episodes}) == 1, "one block for all"


def test_nothing_is_hashed_where_nobody_asks():
    with patch.object(hashlib, "blake2b", wraps=hashlib.blake2b) as hashing:
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


# --- state --------------------------------------------------------------------------------------


def test_state_carries_the_snapshot():
    config = keys_config(threshold=0.0)
    a, b = paying(runner_of(config)), runner_of(config)
    b.set_state(a.get_state())
    assert b.reward_model.version == 17
    a.sample()
    episodes = reported(a.take_report())
    for x, y in zip(a.reward_model.reward(episodes), b.reward_model.reward(episodes), strict=True):
        np.testing.assert_array_equal(x, y)
        assert np.abs(x).sum() > 0
    assert COMPONENT_SNAPSHOT not in a.get_state(components=["rl_module"])


def test_news_is_taken_in_once():
    a, b = (runner_of(keys_config(seed=seed)) for seed in (1, 2))
    paying(a)
    weights = News(3, a.get_state(components=["rl_module"]))
    b.hear({"weights": weights, "snapshot": News(4, a.snapshot)})
    assert b.reward_model.version == 17
    for name, weight in a.module.state_dict().items():
        assert torch.equal(weight, b.module.state_dict()[name])
    with torch.no_grad():
        b.module.actor.weight.zero_()
    b.hear({"weights": weights, "snapshot": News(5, a.snapshot | {"version": 18})})
    assert not b.module.actor.weight.any(), "the same weights, heard twice"
    assert b.reward_model.version == 18


def test_news_by_reference(ray_local):
    a, b = (runner_of(keys_config(seed=seed)) for seed in (1, 2))
    weights = a.get_state(components=["rl_module"])
    news = {"weights": weights, "snapshot": paying(a).snapshot}
    b.sample_shares(0, {name: News(1, ray.put(thing)) for name, thing in news.items()})
    assert b.reward_model.version == 17
    for name, weight in a.module.state_dict().items():
        assert torch.equal(weight, b.module.state_dict()[name])


# --- what users add -----------------------------------------------------------------------------


class Counting(RLlibCallback):
    """A user's callback that changes nothing."""

    steps = ended = 0

    def on_episode_step(self, **kwargs):
        Counting.steps += 1

    def on_episode_end(self, **kwargs):
        Counting.ended += 1


class Watching(ConnectorV2):
    """A user's connector that changes nothing."""

    calls = 0

    def __call__(self, *, batch, **kwargs):
        Watching.calls += 1
        return batch


def assert_pays(runner):
    """Intrinsic rewards are added by whatever loop plays."""
    episodes = paying(runner).sample()
    assert len(episodes) == 8
    report = runner.take_report()
    gained = [
        e.get_return() - s.extrinsic_return for e, s in zip(episodes, report.summaries, strict=True)
    ]
    np.testing.assert_allclose(gained, report.intrinsic_returns, atol=1e-4)
    assert np.abs(gained).sum() > 0


def test_callbacks_are_called_and_rewards_still_paid():
    config = keys_config(threshold=0.0).callbacks(callbacks_class=Counting)
    Counting.steps = Counting.ended = 0
    assert_pays(runner_of(config))
    assert Counting.ended >= 8
    assert Counting.steps > 8 * 50


def test_callback_functions_are_called_too():
    """RLlib also takes functions instead of a class."""
    ended, made = [], []
    config = keys_config(threshold=0.0)
    config.callbacks(
        on_episode_end=lambda **kwargs: ended.append(1),
        on_environment_created=lambda *, env, **kwargs: made.append(env.num_envs),
    )
    assert_pays(runner_of(config))
    assert len(ended) >= 8
    assert made == [4]


@pytest.mark.parametrize("where", ["env_to_module_connector", "module_to_env_connector"])
def test_connectors_are_called_and_rewards_still_paid(where):
    config = keys_config(threshold=0.0)
    config.env_runners(**{where: lambda *args, **kwargs: Watching()})
    Watching.calls = 0
    assert_pays(runner_of(config))
    assert Watching.calls > 50


def test_both_loops_store_the_same_things():
    """RLlib's loop and ours return episodes that a learner cannot tell apart."""
    quick = runner_of(keys_config())
    slow = runner_of(keys_config().callbacks(callbacks_class=Counting))
    slow.module.load_state_dict(quick.module.state_dict())
    a, b = quick.sample()[0], slow.sample()[0]
    assert a.extra_model_outputs.keys() >= {Columns.ACTION_DIST_INPUTS, Columns.ACTION_LOGP}
    for name in (Columns.ACTION_DIST_INPUTS, Columns.ACTION_LOGP):
        x, y = a.get_extra_model_outputs(name), b.get_extra_model_outputs(name)
        assert x.shape[1:] == np.asarray(y).shape[1:]
        assert x.dtype == np.asarray(y).dtype
    for episode in (a, b):
        assert episode.get_observations().dtype == np.uint8
        assert len(episode.get_observations()) == len(episode) + 1 == len(episode.get_infos())
        assert episode.is_numpy
        logits = torch.from_numpy(
            np.asarray(episode.get_extra_model_outputs(Columns.ACTION_DIST_INPUTS))
        )
        actions = torch.from_numpy(np.asarray(episode.get_actions()))[:, None]
        np.testing.assert_allclose(
            logits.log_softmax(-1).gather(1, actions)[:, 0],
            episode.get_extra_model_outputs(Columns.ACTION_LOGP),
            atol=1e-5,
        )
    for runner in (quick, slow):
        for episode in reported(runner.take_report()):
            assert episode.outputs == {}, "RLlib's own are not a core's"
            assert episode.observations.shape == (len(episode) + 1, 5, 5, 3)


# --- failures -----------------------------------------------------------------------------------


def test_a_failure_is_kept_for_the_driver():
    runner = runner_of(plain_config())
    with pytest.raises(ZeroDivisionError):
        runner.apply(lambda r: 1 / 0)
    assert isinstance(runner.failure, ZeroDivisionError)
    assert "rollout worker 0" in "".join(runner.failure.__notes__)
