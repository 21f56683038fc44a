"""The rollout worker by itself: its share of episodes, what it pays, what it reports."""

import numpy as np
import pytest
import ray
import torch
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from tiny import clock_config, keys_config, plain_config

from rllib_conspec import WholeEpisodePPOConfig
from rllib_conspec.algorithm.env_runner import COMPONENT_SNAPSHOT, EpisodeRunner
from rllib_conspec.retrospection.memory import StoredEpisode


def runner_of(config, index=0):
    """A worker as RLlib makes one, but in this process."""
    config = config.copy(copy_frozen=False)
    config.validate()
    config.freeze()
    return EpisodeRunner(config=config, worker_index=index, num_workers=config.num_env_runners)


def paying_learner(config, pays=(0, 2)):
    """A learner's side of the reward model whose prototypes `pays` met the criterion."""
    learner = config.get_reward_model().learner((5, 5, 3), "cpu", 3)
    learner.met[list(pays)] = True
    learner.version = 17
    return learner


def stored(episode):
    return StoredEpisode.of(episode.get_observations()[1:], False)


def extrinsic_returns(runner):
    """Returns of the episodes that RLlib's metrics are computed from."""
    return [e.get_return() for e in runner._done_episodes_for_metrics]


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
        assert len(extrinsic_returns(runner)) == len(episodes)
        runner.get_metrics()
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


# --- seeds --------------------------------------------------------------------------------------


def frames(episodes):
    return np.concatenate([e.get_observations() for e in episodes])


def test_what_is_played_depends_on_seed_worker_and_position():
    def played(seed=1, index=1, position=0):
        runner = runner_of(plain_config(runners=2, seed=seed), index)
        return frames(runner.sample_at(position)[0])

    first = played()
    np.testing.assert_array_equal(first, played())
    for other in (played(seed=2), played(index=2), played(position=1)):
        assert first.shape != other.shape or not np.array_equal(first, other)


def test_what_was_played_before_does_not_matter():
    """Position in training, not history, decides: that is what makes a restored run equal."""
    runner = runner_of(plain_config())
    first, _, again = (frames(runner.sample_at(position)[0]) for position in (520, 0, 520))
    np.testing.assert_array_equal(first, again)


def test_without_a_seed_batches_differ():
    runner = runner_of(plain_config(seed=None))
    a, b = frames(runner.sample()), frames(runner.sample())
    assert a.shape != b.shape or not np.array_equal(a, b)


# --- intrinsic rewards --------------------------------------------------------------------------


@pytest.mark.parametrize("intrinsic", ["window", "potential"])
def test_rewards_are_extrinsic_plus_what_the_scorer_pays(intrinsic):
    config = keys_config(intrinsic=intrinsic, threshold=0.0)
    runner = runner_of(config)
    runner.scorer.load(paying_learner(config).snapshot())
    episodes = runner.sample()
    originals = runner._done_episodes_for_metrics
    paid = 0.0
    for episode, original in zip(episodes, originals, strict=True):
        (expected,) = runner.scorer.reward([stored(original)])
        np.testing.assert_allclose(
            episode.get_rewards() - original.get_rewards(), expected, atol=1e-6
        )
        np.testing.assert_array_equal(episode.get_observations(), original.get_observations())
        paid += np.abs(expected).sum()
    assert paid > 0
    report = runner.take_report()
    gained = [e.get_return() - o.get_return() for e, o in zip(episodes, originals, strict=True)]
    np.testing.assert_allclose(report.intrinsic_returns, gained, atol=1e-4)
    assert report.version == 17


def test_metrics_see_the_environments_rewards_only():
    """The task pays 0 or 1; intrinsic rewards here are far larger."""
    config = keys_config(threshold=0.0, intrinsic_coeff=100.0)
    runner = runner_of(config)
    runner.scorer.load(paying_learner(config).snapshot())
    episodes = runner.sample()
    assert max(e.get_return() for e in episodes) > 10
    assert set(extrinsic_returns(runner)) <= {0.0, 1.0}
    assert runner.get_metrics()["episode_return_max"].peek() <= 1.0
    assert all(s.extrinsic_return in (0.0, 1.0) for s in runner.take_report().summaries)


def test_pieces_of_episodes_are_joined_for_the_report():
    """Algorithms that cut episodes: each piece is paid once, the report holds whole episodes."""
    config = keys_config(threshold=0.0)
    runner = runner_of(config)
    runner.scorer.load(paying_learner(config).snapshot())
    pieces = [e for _ in range(9) for e in runner.sample(num_timesteps=60)]
    report = runner.take_report()
    assert len(report.summaries) == len(report.episodes) > 2
    assert all(s.length > 60 for s in report.summaries)
    assert [len(e) for e in report.episodes] == [s.length for s in report.summaries]
    done = {e.id_ for e in pieces if e.is_done}
    assert len(done) == len(report.summaries)
    for i, id_ in enumerate(e.id_ for e in pieces if e.is_done):
        own = [e for e in pieces if e.id_ == id_]
        assert len(own) > 1
        np.testing.assert_array_equal(
            report.episodes[i].frames,
            np.concatenate([e.get_observations()[1:] for e in own]),
        )
        gained = sum(e.get_return() for e in own) - report.summaries[i].extrinsic_return
        np.testing.assert_allclose(report.intrinsic_returns[i], gained, atol=1e-4)


def test_a_report_is_given_once():
    runner = runner_of(keys_config())
    runner.sample()
    first, second = runner.take_report(), runner.take_report()
    assert len(first.summaries) == len(first.episodes) == 8
    assert first.sample_seconds > 0
    assert second.summaries == second.episodes == []
    assert second.sample_seconds == 0


def test_a_remote_worker_reports_references(ray_local):
    """Frames stay in the store until a learner wants them."""
    runner = runner_of(keys_config(runners=1), index=1)
    episodes = runner.sample()
    references = runner.take_report().episodes
    assert all(isinstance(r, ray.ObjectRef) for r in references)
    np.testing.assert_array_equal(ray.get(references[0]).frames, episodes[0].get_observations()[1:])


def test_without_reward_model_rewards_are_the_environments():
    runner = runner_of(plain_config())
    episodes = runner.sample()
    assert [e.get_return() for e in episodes] == extrinsic_returns(runner)
    report = runner.take_report()
    assert report.episodes == []
    assert [s.success for s in report.summaries] == [e.get_return() > 0 for e in episodes]


def test_a_users_success_function_judges(ray_local):
    runner = runner_of(keys_config(success="tiny:reached_fifty"))
    episodes = runner.sample()
    assert all(len(e) >= 50 for e in episodes)
    assert [s.success for s in runner.take_report().summaries] == [True] * 8


def test_evaluation_is_not_paid_and_not_reported():
    config = keys_config(threshold=0.0)
    config.in_evaluation = True
    runner = runner_of(config)
    runner.scorer.load(paying_learner(config).snapshot())
    episodes = runner.sample(num_episodes=3)
    assert len(episodes) >= 3
    assert {e.get_return() for e in episodes} <= {0.0, 1.0}
    assert runner.take_report().summaries == []


# --- state --------------------------------------------------------------------------------------


def test_state_carries_the_snapshot():
    config = keys_config(threshold=0.0)
    a, b = runner_of(config), runner_of(config)
    a.scorer.load(paying_learner(config).snapshot())
    b.set_state(a.get_state())
    assert b.scorer.version == 17
    episode = stored(a.sample()[0])
    np.testing.assert_array_equal(a.scorer.reward([episode])[0], b.scorer.reward([episode])[0])
    assert COMPONENT_SNAPSHOT not in a.get_state(components=["rl_module"])


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


def assert_pays(runner, config):
    """Intrinsic rewards are added by whatever loop plays."""
    runner.scorer.load(paying_learner(config).snapshot())
    episodes = runner.sample()
    originals = {e.id_: e for e in runner._done_episodes_for_metrics}
    assert len(episodes) == 8
    gained = [e.get_return() - originals[e.id_].get_return() for e in episodes]
    np.testing.assert_allclose(gained, runner.take_report().intrinsic_returns, atol=1e-4)
    assert np.abs(gained).sum() > 0


def test_callbacks_are_called_and_rewards_still_paid():
    config = keys_config(threshold=0.0).callbacks(callbacks_class=Counting)
    Counting.steps = Counting.ended = 0
    assert_pays(runner_of(config), config)
    assert Counting.ended >= 8
    assert Counting.steps > 8 * 50


def test_callback_functions_are_called_too():
    """RLlib also takes functions instead of a class."""
    seen = []
    config = keys_config(threshold=0.0)
    config.callbacks(on_episode_end=lambda **kwargs: seen.append(1))
    assert_pays(runner_of(config), config)
    assert len(seen) >= 8


@pytest.mark.parametrize("where", ["env_to_module_connector", "module_to_env_connector"])
def test_connectors_are_called_and_rewards_still_paid(where):
    config = keys_config(threshold=0.0)
    config.env_runners(**{where: lambda *args, **kwargs: Watching()})
    Watching.calls = 0
    assert_pays(runner_of(config), config)
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


# --- failures -----------------------------------------------------------------------------------


def test_a_failure_is_kept_for_the_driver():
    runner = runner_of(plain_config())
    with pytest.raises(ZeroDivisionError):
        runner.apply(lambda r: 1 / 0)
    assert isinstance(runner.failure, ZeroDivisionError)
    assert "rollout worker 0" in "".join(runner.failure.__notes__)
