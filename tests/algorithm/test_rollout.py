"""Our own rollout loop, against logs that the environments keep themselves."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from tiny import KEYS, Clock

from rllib_conspec.algorithm.policy import EpisodePolicy
from rllib_conspec.algorithm.rollout import Player, can_play
from rllib_conspec.networks.cores.base import Core


def clocks(count=3, *, copy=True, mode=AutoresetMode.NEXT_STEP, **kwargs):
    return SyncVectorEnv(
        [lambda: Clock(**kwargs) for _ in range(count)], copy=copy, autoreset_mode=mode
    )


def policy_for(env, *, core_dim=8, encoder="mlp"):
    torch.manual_seed(0)
    module = EpisodePolicy(
        observation_space=env.single_observation_space,
        action_space=env.single_action_space,
        model_config={"encoder": encoder, "encoder_dim": 8, "core_dim": core_dim},
    )
    # The first policy is almost uniform, whatever it sees: let observations and memory matter.
    with torch.no_grad():
        module.actor.weight.normal_()
    return module


def player(env, *, core_dim=8, longest=30, normalize=True, clip=False, **kwargs):
    module = policy_for(env, core_dim=core_dim, **kwargs)
    return Player(env, module, longest=longest, normalize=normalize, clip=clip)


def play(env, count, *, seed=0, explore=True, **kwargs):
    return player(env, **kwargs).play(count, explore=explore, seed=seed)


def started(env):
    """All episodes that were begun, in that order: by vector step, then by environment."""
    logs = [(e["start"], i, e) for i, sub in enumerate(env.envs) for e in sub.unwrapped.log]
    return [entry for _, _, entry in sorted(logs, key=lambda x: x[:2])]


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_episodes_are_the_first_ones_started_exactly_as_they_happened(count, copy):
    env = clocks(3, copy=copy)
    episodes = play(env, count, seed=count)
    assert len(episodes) == count
    for episode, truth in zip(episodes, started(env), strict=False):
        np.testing.assert_array_equal(episode.get_observations(), truth["observations"])
        np.testing.assert_array_equal(episode.get_actions(), truth["actions"])
        np.testing.assert_array_equal(episode.get_rewards(), truth["rewards"])
        assert episode.is_terminated == truth["terminated"]
        assert episode.is_truncated == truth["truncated"]
        assert len(episode) == len(truth["rewards"])
        episode.validate()
    assert len({e.id_ for e in episodes}) == count


def test_a_policy_may_be_shown_something_else_than_what_episodes_keep():
    env, drawn = clocks(3), []

    def shown(seen, generator):
        drawn.append(torch.rand((), generator=generator))
        return -seen

    module = policy_for(env, core_dim=0)
    one = Player(env, module, longest=30, normalize=True, clip=False, shown=shown)
    episodes = one.play(5, explore=True, seed=1)
    for episode, truth in zip(episodes, started(env), strict=False):
        kept = np.array(truth["observations"])
        np.testing.assert_array_equal(episode.get_observations(), kept)
        with torch.no_grad():
            inputs, _, _ = module.act(-torch.from_numpy(kept[:-1]), {})
        found = episode.get_extra_model_outputs(Columns.ACTION_DIST_INPUTS)
        np.testing.assert_allclose(found, inputs.numpy(), atol=1e-5)
    first, drawn[:] = drawn[:], []
    one.play(5, explore=True, seed=1)
    assert drawn == first, "by the seed of the play"


def test_lengths_are_those_of_the_environment_not_biased_to_short():
    """Half of all episodes are long. The first finishers are almost all short."""
    env = clocks(4, lengths=(1, 30))
    one = player(env, core_dim=0)
    # Environment i gets seed + i: far apart, or the same episodes come again and again.
    plays = [one.play(6, explore=True, seed=100 * s) for s in range(60)]
    lengths = [len(episode) for episodes in plays for episode in episodes]
    assert set(lengths) == {1, 30}
    assert abs(np.mean(np.array(lengths) == 30) - 0.5) < 0.08


@pytest.mark.parametrize("count", [1, 3, 20])
def test_episodes_whose_environment_broke_down_are_played_anew(count):
    env = clocks(3, lengths=(2, 3, 20), drop_at=5)
    one = player(env)
    episodes = one.play(count, explore=True, seed=count)
    assert len(episodes) == count
    # What is returned are whole episodes, as they happened, and no part of a broken one.
    whole = [e for e in started(env) if len(e["actions"]) in (2, 3)]
    happened = {np.array(e["observations"]).tobytes() for e in whole}
    for episode in episodes:
        assert len(episode) in (2, 3)
        assert episode.get_observations().tobytes() in happened
    broken = sum(len(e["actions"]) == 5 for e in started(env))
    assert one.dropped <= broken
    if count == 20:
        assert one.dropped > 0


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("core_dim", [0, 8])
def test_stored_inputs_are_the_training_pass_over_the_whole_episode(core_dim, continuous):
    """Memory starts from zero in every episode, also in those that follow another one."""
    env = clocks(3, continuous=continuous)
    one = player(env, core_dim=core_dim)
    episodes = one.play(12, explore=True, seed=3)
    for episode in episodes:
        obs = torch.from_numpy(episode.get_observations()[:-1])
        batch = {Columns.OBS: obs}
        if core_dim:
            batch = {
                Columns.OBS: obs[None],
                Columns.STATE_IN: {"h": torch.zeros(1, core_dim)},
            }
        with torch.no_grad():
            inputs = one.module.forward_train(batch)[Columns.ACTION_DIST_INPUTS]
        inputs = inputs[0] if core_dim else inputs
        stored = episode.get_extra_model_outputs(Columns.ACTION_DIST_INPUTS)
        np.testing.assert_allclose(stored, inputs.numpy(), rtol=1e-4, atol=1e-5)

        distribution = one.module.get_exploration_action_dist_cls().from_logits(inputs)
        logp = distribution.logp(torch.from_numpy(episode.get_actions()))
        np.testing.assert_allclose(
            episode.get_extra_model_outputs(Columns.ACTION_LOGP), logp, rtol=1e-3, atol=1e-4
        )


def test_memory_is_used_within_an_episode():
    """The same observation twice gives different outputs when what came before differs."""
    env = clocks(2, lengths=(20,))
    inputs = play(env, 2, seed=1)[0].get_extra_model_outputs(Columns.ACTION_DIST_INPUTS)
    module = policy_for(env)
    first = torch.from_numpy(env.envs[0].unwrapped.log[0]["observations"][5])[None]
    with torch.no_grad():
        alone, _, _ = module.act(first, {"h": torch.zeros(1, 8)})
    assert np.abs(inputs[5] - alone[0].numpy()).max() > 1e-3


def test_actions_follow_the_policy():
    """Each action comes as often as the policy says, and greedy takes the best one."""
    env = clocks(4, lengths=(20,))
    one = player(env, core_dim=0)
    with torch.no_grad():
        one.module.actor.weight.zero_()
        one.module.actor.bias.copy_(torch.tensor([0.7, 0.2, 0.1]).log())
    taken = np.concatenate([e.get_actions() for e in one.play(100, explore=True, seed=0)])
    share = np.bincount(taken, minlength=3) / len(taken)
    np.testing.assert_allclose(share, [0.7, 0.2, 0.1], atol=0.04)
    greedy = np.concatenate([e.get_actions() for e in one.play(4, explore=False, seed=0)])
    assert (greedy == 0).all()


def continuous_actions(env, episodes):
    """(what the policy chose and the episodes keep, what the environment was given)"""
    chosen = np.concatenate([e.get_actions() for e in episodes])
    given = np.concatenate([np.array(e["actions"]) for e in started(env)[: len(episodes)]])
    assert chosen.dtype == np.float32
    return chosen, given


def test_box_actions_are_normalized():
    env = clocks(2, continuous=True, lengths=(20,))
    chosen, given = continuous_actions(env, play(env, 4))
    low, high = env.single_action_space.low, env.single_action_space.high
    # -1 … 1 is the range of the environment, and beyond it is cut.
    expected = np.clip(low + (chosen + 1) * (high - low) / 2, low, high)
    np.testing.assert_allclose(given, expected, rtol=1e-5, atol=1e-6)
    assert np.abs(chosen).max() > 1, "nothing to cut in this test"


def test_box_actions_are_clipped():
    env = clocks(2, continuous=True, lengths=(20,))
    chosen, given = continuous_actions(env, play(env, 4, normalize=False, clip=True))
    space = env.single_action_space
    np.testing.assert_array_equal(given, np.clip(chosen, space.low, space.high))
    assert not np.array_equal(chosen, given)


def test_box_actions_are_left_alone():
    env = clocks(2, continuous=True, lengths=(20,))
    chosen, given = continuous_actions(env, play(env, 4, normalize=False, clip=False))
    np.testing.assert_array_equal(given, chosen)


def test_box_actions_without_exploration_are_the_means():
    env = clocks(2, continuous=True)
    for episode in play(env, 4, explore=False):
        means = episode.get_extra_model_outputs(Columns.ACTION_DIST_INPUTS)[:, :2]
        np.testing.assert_array_equal(episode.get_actions(), means)


def test_box_actions_have_the_deviation_of_the_policy():
    env = clocks(4, continuous=True, lengths=(20,))
    one = player(env, core_dim=0)
    with torch.no_grad():
        one.module.actor.weight.zero_()
        one.module.actor.bias.copy_(torch.tensor([0.5, -1.0, np.log(0.1), np.log(2.0)]))
    actions = np.concatenate([e.get_actions() for e in one.play(50, explore=True, seed=0)])
    np.testing.assert_allclose(actions.mean(0), [0.5, -1.0], atol=0.2)
    np.testing.assert_allclose(actions.std(0), [0.1, 2.0], rtol=0.1)


def signature(episodes):
    return [
        np.concatenate([np.ravel(e.get_observations()), np.ravel(e.get_actions())])
        for e in episodes
    ]


def same(a, b):
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("continuous", [False, True])
def test_a_seed_decides_everything(continuous):
    """Also for a player in the middle of its life: what it played before does not matter."""
    env = clocks(3, continuous=continuous)
    one = player(env)
    first, other, again = (signature(one.play(6, explore=True, seed=s)) for s in (5, 6, 5))
    fresh = signature(play(clocks(3, continuous=continuous), 6, seed=5))
    assert same(first, again)
    assert same(first, fresh)
    assert not same(first, other)


def test_without_a_seed_every_play_differs():
    one = player(clocks(3))
    assert not same(
        *([e.get_actions() for e in one.play(8, explore=True, seed=None)] for _ in range(2))
    )


def test_info_of_the_last_step_is_kept():
    for episode in play(clocks(3), 9):
        assert episode.get_infos(-1)["is_success"] == (len(episode) > 2)
        assert len(episode.get_infos()) == len(episode) + 1


def test_nested_infos_do_no_harm():
    """Gymnasium's RecordEpisodeStatistics puts a dict into every last info; vectors nest it."""
    for episode in play(clocks(3, nested_info=True), 9):
        assert episode.get_infos(-1)["is_success"] == (len(episode) > 2)


def test_frames_stay_uint8_and_rewards_float32():
    env = gym.make_vec(KEYS, num_envs=2, vectorization_mode="vector_entry_point", keys=1)
    for episode in play(env, 3, encoder="conv"):
        assert episode.get_observations().dtype == np.uint8
        assert episode.get_rewards().dtype == np.float32


@pytest.mark.parametrize("longest", [30, 2])  # 2: shorter than promised, so that the block grows
def test_each_observation_is_copied_once_into_a_block_of_its_environment(longest):
    """Episodes are views: two of one environment are pieces of the same memory."""
    env = clocks(2)
    episodes = play(env, 12, longest=longest)
    blocks = {id(frames.base) for frames in (e.observations.data for e in episodes)}
    assert len(blocks) == 1
    assert not any(
        np.shares_memory(a.observations.data, b.observations.data)
        for i, a in enumerate(episodes)
        for b in episodes[:i]
    )
    for episode, truth in zip(episodes, started(env), strict=False):
        np.testing.assert_array_equal(episode.get_observations(), truth["observations"])
        assert episode.observations.data.flags.c_contiguous


class Counter(Core):
    """Counts the steps of an episode in a state of its own shape, and tells so."""

    def initial_state(self):
        return {"count": torch.zeros(2, 3), "twice": torch.zeros(())}

    def step(self, x, state):
        state = {"count": state["count"] + 1, "twice": state["twice"] + 2}
        return x, state, {"counted": state["count"][:, 0, :2], "twice": state["twice"]}


def test_what_a_core_gives_besides_is_kept_and_its_state_begins_anew_in_every_episode():
    one = player(clocks(3))
    one.module.core = Counter(8, 8)
    for episode in one.play(9, explore=True, seed=0):
        steps = np.arange(1.0, len(episode) + 1)
        counted = episode.get_extra_model_outputs("counted")
        np.testing.assert_array_equal(counted, np.stack([steps, steps], axis=1))
        np.testing.assert_array_equal(episode.get_extra_model_outputs("twice"), 2 * steps)


def test_vectorised_and_single_key_task_play_alike():
    """The vector form is an optimisation: the same episodes come out of gymnasium's own vectors."""
    fast = gym.make_vec(KEYS, num_envs=1, vectorization_mode="vector_entry_point", keys=1)
    slow = SyncVectorEnv([lambda: gym.make(KEYS, keys=1)])
    a, b = (play(env, 1, encoder="conv", seed=4) for env in (fast, slow))
    assert same(signature(a), signature(b))


def test_who_can_play():
    env = clocks(2)
    module = policy_for(env)
    assert can_play(env, module)
    assert not can_play(clocks(2, mode=AutoresetMode.SAME_STEP), module)
    other = (
        PPOConfig()
        .environment(Clock)
        .get_default_rl_module_spec()
        .module_class(
            observation_space=env.single_observation_space,
            action_space=env.single_action_space,
            model_config=DefaultModelConfig(),
            catalog_class=PPOCatalog,
        )
    )
    assert not can_play(env, other)
    grid = SyncVectorEnv([lambda: gym.make("FrozenLake-v1")])
    assert not can_play(grid, module)


# --- actions that are drawn evenly ------------------------------------------------------------


def test_epsilon_draws_a_share_of_the_actions_evenly_and_says_how_likely_they_were():
    env = clocks(4)
    greedy = player(env)
    with torch.no_grad():  # a policy that always does the same
        greedy.module.actor.weight.zero_()
        greedy.module.actor.bias.copy_(torch.eye(env.single_action_space.n)[0] * 50)
    count = env.single_action_space.n
    for epsilon in (0.0, 0.4):
        greedy._epsilon = epsilon
        episodes = greedy.play(60, explore=True, seed=3)
        actions = np.concatenate([e.get_actions() for e in episodes])
        other = np.mean(actions != 0)
        assert other == pytest.approx(epsilon * (count - 1) / count, abs=0.06)
        logp = np.concatenate([e.get_extra_model_outputs(Columns.ACTION_LOGP) for e in episodes])
        likely = np.where(actions == 0, 1 - epsilon + epsilon / count, epsilon / count)
        np.testing.assert_allclose(np.exp(logp), likely, atol=1e-5)
