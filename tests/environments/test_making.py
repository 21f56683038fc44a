from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from rooms import Walk

from rllib_conspec.environments import critical_events, find, look, make_single, make_vector
from rllib_conspec.environments.making import limit_arguments
from rllib_conspec.errors import OptionError

KEYS = "rllib_conspec:MultiKeyToDoor-v0"
DOOR = "minigrid:MiniGrid-DoorKey-6x6-v0"


def lengths(env, steps, seed=0):
    """Lengths of all episodes that end within these random steps."""
    env.action_space.seed(seed)
    env.reset(seed=seed)
    found, count, fresh = [], np.zeros(env.num_envs, int), np.zeros(env.num_envs, bool)
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        count = np.where(fresh, 0, count + 1)
        fresh = terminated | truncated
        found += count[fresh].tolist()
    return found


def made(env, env_config=None, num_envs=2, mode="auto", observation_key=None, **options):
    facts = look(env, env_config or {}, observation_key=observation_key, mode=mode, **options)
    vector = make_vector(
        env, env_config or {}, num_envs, facts, observation_key=observation_key, mode=mode
    )
    assert vector.num_envs == num_envs
    assert vector.single_observation_space == facts.observation_space
    assert vector.single_action_space == facts.action_space
    assert vector.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    return vector


def test_own_vector_forms_are_used():
    assert type(made(KEYS, {"keys": 2}).unwrapped).__name__ == "MultiKeyToDoorVectorEnv"
    assert type(made("CartPole-v1").unwrapped).__name__ == "CartPoleVectorEnv"


def test_others_are_stepped_one_by_one_or_in_processes():
    plain = partial(made, "rooms:Walk", max_episode_steps=4)
    assert isinstance(plain(), SyncVectorEnv)
    many = plain(mode="async")
    try:
        assert isinstance(many, AsyncVectorEnv)
        assert critical_events(many) == ("turned",)
        assert set(lengths(many, 20)) == {4}
    finally:
        many.close()
    with pytest.raises(OptionError, match="mode: must be one of auto, sync, async"):
        plain(mode="asnyc")


@settings(max_examples=20)
@given(
    st.sampled_from([("CartPole-v1", {}), (KEYS, {"keys": 1}), ("rooms:Walk", {"far": 6})]),
    st.integers(1, 30),
    st.integers(0, 99),
)
def test_no_episode_is_longer_than_the_limit(env, limit, seed):
    found = lengths(made(*env, max_episode_steps=limit), 3 * limit, seed)
    assert found and max(found) <= limit
    if limit <= 5:  # too early for the pole to fall, the door to open, the walk to end
        assert set(found) == {limit}


def test_a_limit_may_be_higher_than_the_registered_one():
    hill = made("MountainCar-v0", max_episode_steps=230)  # registered with 200, ends by itself late
    assert set(lengths(hill, 240)) == {230}


def test_the_limit_of_a_game_is_a_rule_and_not_a_cut():
    env = made(KEYS, {"keys": 1}, mode="sync")
    env.reset(seed=0)
    steps = look(KEYS, {"keys": 1}).max_episode_steps
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(np.zeros(2, int))
    assert terminated.all() and not truncated.any()


def test_atari_in_its_vector_form_keeps_the_limit_to_the_step():
    env = made("ALE/Pong-v5", max_episode_steps=37)
    try:
        assert env.single_observation_space.shape == (4, 84, 84)
        assert set(lengths(env, 120)) == {37}
    finally:
        env.close()


def test_atari_is_not_shown_in_another_form_than_was_looked_at():
    facts = look("ALE/Pong-v5", {}, max_episode_steps=9)
    with pytest.raises(OptionError, match=r"shows \(210, 160, 3\) with mode sync"):
        make_vector("ALE/Pong-v5", {}, 1, facts, mode="sync")


def test_how_vector_forms_are_told_the_limit():
    told = partial(limit_arguments, env_config={}, limit=50)
    assert told(find("CartPole-v1")) == {"max_episode_steps": 50}
    assert told(find("ALE/Pong-v5")) == {"max_num_frames_per_episode": 200}
    assert told(find("ALE/Pong-v5"), env_config={"frameskip": 2}) == {
        "max_num_frames_per_episode": 100
    }
    assert told(find(KEYS)) is None
    assert told(find(KEYS), limit=None) == {}


def test_minigrid_by_its_picture():
    env = made(DOOR, observation_key="image", max_episode_steps=20)
    observations, info = env.reset(seed=1)
    assert observations.shape == (2, 7, 7, 3) and observations.dtype == np.uint8
    assert set(lengths(env, 63)) == {20}
    raw, _ = gym.make(DOOR).reset(seed=int(info["reset_seed"][0]))
    assert np.array_equal(observations[0], raw["image"])


def test_infos_of_plain_environments_come_through():
    env = made("rooms:Walk", max_episode_steps=9)
    env.reset(seed=0)
    env.step(np.array([0, 0]))
    *_, info = env.step(np.array([0, 1]))
    assert info["_turned"].tolist() == [False, True] and info["turned"][1] == 1


def test_critical_events_of_any_environment():
    assert critical_events(made("rooms:Walk", max_episode_steps=9)) == ("turned",)
    assert critical_events(made(KEYS)) == ("key_taken", "door_opened")
    assert critical_events(made(KEYS, mode="sync")) == ("key_taken", "door_opened")
    assert critical_events(made("CartPole-v1", mode="sync")) == ()
    assert critical_events(gym.make_vec("CartPole-v1", 1, "sync")) == ()
    foreign = gym.make_vec("CartPole-v1", 1, "async")
    try:
        assert critical_events(foreign) == ()
        foreign.reset()
    finally:
        foreign.close()


def test_a_single_environment_plays_an_episode_again():
    many = made("rooms:Walk", {"far": 6}, max_episode_steps=12)
    many.action_space.seed(0)
    observations, info = many.reset(seed=3)
    facts = look("rooms:Walk", {"far": 6}, max_episode_steps=12)
    again = make_single("rooms:Walk", {"far": 6}, facts, render_mode="rgb_array")
    observation, _ = again.reset(seed=int(info["reset_seed"][1]))
    over = False
    while not over:
        assert np.array_equal(observation, observations[1])
        actions = many.action_space.sample()
        observations, _, terminated, truncated, _ = many.step(actions)
        observation, _, *ends, _ = again.step(actions[1])
        assert ends == [terminated[1], truncated[1]]
        over = any(ends)
    assert np.array_equal(observation, observations[1])
    assert again.render().shape == (4, 4, 3)


def test_a_render_mode_that_is_not_known_is_left_out():
    env = make_single(
        Walk_without_pictures, {}, look(Walk_without_pictures, {}, limit_needed=False)
    )
    assert env.render_mode is None
    facts = look(DOOR, {}, observation_key="image", max_episode_steps=9)
    door = make_single(DOOR, {}, facts, observation_key="image", render_mode="rgb_array")
    door.reset(seed=0)
    assert door.render().ndim == 3 and door.observation_space.shape == (7, 7, 3)


def Walk_without_pictures(config):
    return Walk()


def test_classes_get_the_config_object_itself():
    """RLlib's is a dict that knows which worker it is for."""

    class Context(dict):
        worker_index = 3

    seen = []

    def make(config):
        seen.append(config.worker_index)
        return Walk()

    facts = look(make, Context(), max_episode_steps=5)
    make_vector(make, Context(), 2, facts).close()
    assert seen == [3, 3, 3]
