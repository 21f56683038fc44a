import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given
from hypothesis import strategies as st
from rooms import Walk

from rllib_conspec.environments.wrappers import SeededResets, TimeLimit, attribute


def play(env, actions, **reset):
    observation, info = env.reset(**reset)
    observations = [observation, *(env.step(a)[0] for a in actions)]
    return np.array(observations), info.get("reset_seed")


ACTIONS = st.lists(st.integers(0, 1), max_size=9)


@given(st.integers(0, 2**31 - 1), st.lists(ACTIONS, min_size=1, max_size=4))
def test_every_episode_can_be_played_again_from_its_seed_and_its_actions(seed, episodes):
    env = SeededResets(Walk())
    seeds = []
    for number, actions in enumerate(episodes):
        seen, used = play(env, actions, **({"seed": seed} if number == 0 else {}))
        again, _ = play(Walk(), actions, seed=used)
        assert np.array_equal(seen, again)
        seeds.append(used)
    assert len(set(seeds)) == len(seeds)
    # The sequence depends on the first seed alone, and begins anew with it.
    other = SeededResets(Walk())
    for start in (env, other):
        repeated = [start.reset(seed=seed)[1], *(start.reset()[1] for _ in seeds[1:])]
        assert [info["reset_seed"] for info in repeated] == seeds


def test_without_any_seed_episodes_differ():
    one, other = SeededResets(Walk()), SeededResets(Walk())
    seeds = [env.reset()[1]["reset_seed"] for env in (one, one, other, other)]
    assert len(set(seeds)) == 4 and all(isinstance(seed, int) for seed in seeds)


def test_automatic_resets_of_a_vector_are_seeded_too():
    make = lambda: SeededResets(TimeLimit(Walk(), 3))  # noqa: E731
    many = SyncVectorEnv([make] * 2, autoreset_mode=AutoresetMode.NEXT_STEP)
    _, info = many.reset(seed=5)
    first = info["reset_seed"].tolist()
    for _ in range(4):  # the fourth step resets
        observations, *_, info = many.step(np.ones(2, int))
    assert info["_reset_seed"].all()
    second = info["reset_seed"].tolist()
    assert len({*first, *second}) == 4
    for index in range(2):
        assert np.array_equal(observations[index], Walk().reset(seed=second[index])[0])


@given(st.integers(1, 12), st.integers(1, 12))
def test_an_episode_that_ends_by_itself_at_the_limit_is_not_cut_off(limit, far):
    env = TimeLimit(Walk(far=far), limit)
    env.reset(seed=0)
    for step in range(1, limit + 1):
        _, _, terminated, truncated, _ = env.step(1)
        assert not (terminated and truncated)
        if terminated:
            return
        assert truncated == (step == limit)


def test_attributes_of_environments_and_wrappers():
    class Named(gym.Wrapper):
        nickname = "outer"

    env = gym.wrappers.OrderEnforcing(Named(Walk(far=9)))
    assert attribute(env, "far") == 9
    assert attribute(env, "nickname") == "outer"
    assert attribute(env, "missing", 3) == 3
