"""From RLlib's episodes to ours, and the way of frames to the learner."""

import pickle
import time
from unittest.mock import patch

import numpy as np
import pytest
import ray
from inside import learner_of, trained_on
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from tiny import CONSTANT, keys_config

from rllib_conspec.algorithm.report import (
    Held,
    Pointer,
    Share,
    all_fetched,
    episodes_at,
    fetched,
    joined,
)
from rllib_conspec.episodes import Episode, PackedEpisode
from rllib_conspec.reward_models.conspec.memory import EpisodeMemory


def played(length, *, cuts=(), lookback=1, terminated=True):
    """RLlib's episode of so many steps, cut after some of them; observation t is (t, −t)."""
    episode = SingleAgentEpisode(
        observations=[np.array([0.0, 0.0], np.float32)], infos=[{"reset_seed": np.int64(5)}]
    )
    pieces = []
    for t in range(1, length + 1):
        over = t == length
        episode.add_env_step(
            np.array([t, -t], np.float32),
            t - 1,
            reward=float(t == 3),
            infos={"bell": t} if t % 4 == 0 else {},
            terminated=over and terminated,
            truncated=over and not terminated,
            extra_model_outputs={"action_logp": 0.5, "weights_seq_no": 7, "focus": np.array([t])},
        )
        if t in cuts:
            pieces.append(episode)
            episode = episode.cut(len_lookback_buffer=lookback)
    return [piece.to_numpy() for piece in (*pieces, episode)]


def whole(pieces, success=lambda episode: False, critical_events=()):
    return joined(pieces, success, critical_events)


@pytest.mark.parametrize("lookback", [0, 1, 3])
@pytest.mark.parametrize("cuts", [(), (3,), (1, 2, 8)])
@pytest.mark.parametrize("terminated", [True, False])
def test_pieces_are_joined_to_the_episode_that_was_played(cuts, lookback, terminated):
    episode = whole(played(9, cuts=cuts, lookback=lookback, terminated=terminated))
    steps = np.arange(10.0)
    np.testing.assert_array_equal(episode.observations, np.stack([steps, -steps], axis=1))
    np.testing.assert_array_equal(episode.actions, np.arange(9))
    np.testing.assert_array_equal(episode.rewards, np.arange(1, 10) == 3)
    assert episode.rewards.dtype == np.float32
    assert episode.terminated is terminated
    assert episode.seed == 5
    assert type(episode.seed) is int
    # What RLlib itself keeps with a step is not a policy's output.
    assert list(episode.outputs) == ["focus"]
    np.testing.assert_array_equal(episode.outputs["focus"][:, 0], np.arange(1, 10))


@pytest.mark.parametrize("cuts", [(), (4,), (3, 8)])
def test_events_are_where_the_environment_marked_them(cuts):
    pieces = played(9, cuts=cuts)
    assert whole(pieces).events == ()
    assert whole(pieces, critical_events=["bell"]).events == ((3, "bell 4"), (7, "bell 8"))


@pytest.mark.parametrize("verdict", [True, False, None, np.True_])
def test_success_is_judged_once_on_the_whole_episode(verdict):
    seen = []

    def success(episode):
        seen.append(episode)
        return verdict

    episode = whole(played(8, cuts=(3,)), success)
    assert [len(e) for e in seen] == [8]
    assert seen[0].info == {"bell": 8}
    assert episode.success is (None if verdict is None else bool(verdict))
    assert episode.summary.success is episode.success
    assert (episode.summary.length, episode.summary.extrinsic_return) == (8, 1.0)


def test_an_episode_in_one_piece_shares_its_arrays():
    (piece,) = played(9)
    episode = whole([piece])
    assert episode.observations is piece.observations.data
    assert episode.actions is piece.actions.data


def test_frames_are_stored_once_in_a_share():
    """Of what reward models see, only the rewards have to be stored besides: 4 bytes a step."""
    (piece,) = played(3000)
    alone, both = (
        len(pickle.dumps(Share([piece], episodes), protocol=5))
        for episodes in ([], [whole([piece])])
    )
    assert both - alone < 3000 * 4 + 1000 < piece.observations.data.nbytes


# --- fetching -----------------------------------------------------------------------------------


def test_a_share_is_fetched_once_for_all_of_its_episodes(ray_local):
    episodes = [whole(played(n)) for n in (4, 6)]
    both = Share([], [*episodes, episodes[0]])
    first, second = ray.put(both), ray.put(both)
    wanted = [(first, 0), (second, 1), (first, 2), (first, 1)]
    found = episodes_at((n, Pointer(*place)) for n, place in enumerate(wanted))
    assert [(label, len(e)) for label, e in found] == [(0, 4), (1, 6), (2, 4), (3, 6)]
    # One object in the share, so one object here: unpickled twice it would be two.
    assert found[0][1] is found[2][1]
    assert found[1][1] is not found[3][1]


def test_references_in_a_list_that_is_elsewhere(ray_local):
    shares = [ray.put(Share([], [whole(played(n)), whole(played(n + 1))])) for n in (2, 5)]
    bundle = ray.put(shares)
    held = [Held(bundle, place) for place in (1, 0)]
    with patch.object(ray, "get", wraps=ray.get) as get:
        found = all_fetched([*held, shares[0], "here"])
    assert [len(share.episodes[0]) for share in found[:3]] == [5, 2, 2]
    assert found[3] == "here"
    assert [call.args[0] for call in get.call_args_list].count(bundle) == 1
    assert len(fetched(held[0]).episodes[1]) == 6
    found = episodes_at([("a", Pointer(held[0], 1)), ("b", Pointer(Held(bundle, 1), 0))])
    assert [(label, len(e)) for label, e in found] == [("a", 6), ("b", 5)]


def test_what_is_here_is_not_fetched(ray_local):
    share = Share([], [whole(played(2))])
    assert fetched(share) is share
    assert len(fetched(ray.put(share)).episodes) == 1
    ((label, episode),) = episodes_at([("good", Pointer(share, 0))])
    assert label == "good"
    assert episode is share.episodes[0]


def test_episodes_whose_worker_died_are_left_out(ray_local):
    """The rest of the batch is learned from all the same."""

    @ray.remote(num_cpus=0)
    class Owner:
        def put(self, episode):
            # A reference inside a list is not resolved on its way to the driver.
            return [ray.put(Share([], [episode, episode]))]

    def episode(value):
        frames = np.full((3000, 5, 5, 3), value, np.uint8)
        return Episode(frames, np.zeros(2999), np.zeros(2999, np.float32))

    mortal, other = Owner.remote(), Owner.remote()
    (lost,), (kept,) = (
        ray.get(owner.put.remote(episode(i))) for i, owner in enumerate((mortal, other))
    )
    bundle = ray.put([lost, kept])
    ray.kill(mortal)
    deadline = time.monotonic() + 60
    while episodes_at([(None, Pointer(lost, 0))]):  # Ray takes a second or two to notice
        assert time.monotonic() < deadline
        time.sleep(0.2)
    found = episodes_at([("a", Pointer(lost, 1)), ("b", Pointer(kept, 1))])
    assert [label for label, _ in found] == ["b"]
    assert (found[0][1].observations == 1).all()
    lost, kept = all_fetched([Held(bundle, 0), Held(bundle, 1)])
    assert lost is None
    assert len(kept.episodes) == 2


def test_references_whose_keeper_died_are_left_out(ray_local):
    @ray.remote(num_cpus=0)
    class Keeper:
        def keep(self, references):
            return [ray.put(references)]

    keeper, share = Keeper.remote(), ray.put(Share([], [whole(played(2))]))
    (bundle,) = ray.get(keeper.keep.remote([share]))
    ray.kill(keeper)
    deadline = time.monotonic() + 60
    while fetched(Held(bundle, 0)) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert all_fetched([Held(bundle, 0), "here"]) == [None, "here"]


# --- copies -------------------------------------------------------------------------------------


def test_frames_are_copied_once_on_their_way_to_a_reward_model(built):
    """In one process: into the worker's block. RL update and reward model look at that."""
    config = keys_config().rewards(models={CONSTANT: {}})
    algo, updated = built(config), []
    original = algo.learner_group.update

    def spy(*args, training_data, **kwargs):
        for share in (s for shares in training_data.shares for s in shares):
            updated.extend(e.observations.data for e in share.rl)
        return original(*args, training_data=training_data, **kwargs)

    algo.learner_group.update = spy
    algo.train()
    given = [e.observations for e in learner_of(algo).reward_model.models[CONSTANT].given]
    assert len(given) == len(updated) == 8
    assert all(np.shares_memory(a, b) for a, b in zip(given, updated, strict=True))
    assert len({id(frames.base) for frames in given}) == 1, "not the worker's one block"


def test_a_stored_episode_is_the_second_copy(built, monkeypatch):
    """It holds its frames packed, or it would keep the block of a whole batch alive."""
    offered, original = [], EpisodeMemory.extend

    def extend(self, episodes):
        new = list(episodes)
        offered.extend(new)
        original(self, new)

    monkeypatch.setattr(EpisodeMemory, "extend", extend)
    config = keys_config().rewards(models={CONSTANT: {}})
    algo = built(config)
    episodes, _ = trained_on(algo)
    given = learner_of(algo).reward_model.models[CONSTANT].given
    stored = {e.frames.tobytes(): e for e in offered}
    assert len(stored) > 2
    assert stored.keys() <= {e.get_observations()[1:].tobytes() for e in episodes}
    for episode in stored.values():
        assert isinstance(episode, PackedEpisode) and isinstance(episode.observations, bytes)
        assert not any(np.shares_memory(episode.rest.rewards, e.rewards) for e in given)
