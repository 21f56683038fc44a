import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.environments import look, make_vector
from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.atari.env import AtariColourEnv
from rllib_conspec.tasks.atari.vector import AtariColourVectorEnv

ID = "rllib_conspec:Atari-v0"


def play(env, steps, seed=0):
    """Observations, rewards, ends and infos of `steps` steps of random actions."""
    env.reset(seed=seed)
    actions = np.random.default_rng(seed).integers(env.single_action_space.n, size=(steps, 99))
    played = [env.step(a[: env.num_envs]) for a in actions]
    seen, rewards, terminated, truncated, infos = (list(p) for p in zip(*played, strict=True))
    return *map(np.array, (seen, rewards, terminated, truncated)), infos


def episodes(rewards, over):
    """The rewards of every finished episode, environment by environment, without reset steps."""
    found = []
    for e in range(rewards.shape[1]):
        begin = 0
        for end in np.flatnonzero(over[:, e]):
            found.append(rewards[begin : end + 1, e])
            begin = end + 2
    return found


@settings(max_examples=5)
@given(
    st.sampled_from(["Pong", "Bowling", "AirRaid", "Breakout"]),
    st.integers(0, 1000),
    st.integers(5, 70),
)
def test_the_whole_score_is_paid_on_the_last_step(game, seed, steps):
    both = [
        play(AtariColourVectorEnv(3, game, delayed, steps), 150, seed) for delayed in (False, True)
    ]
    (seen, rewards, over, *_, infos), (seen_too, late, over_too, *_) = both
    np.testing.assert_array_equal(seen, seen_too)
    np.testing.assert_array_equal(over, over_too)
    at_once, delayed = episodes(rewards, over), episodes(late, over)
    assert len(at_once) == len(delayed) >= 3
    for plain, held in zip(at_once, delayed, strict=True):
        assert held[-1] == plain.sum() and not held[:-1].any()
        assert len(plain) <= steps
    scores = [i["score"][i["_score"]] for i in infos if i]
    assert sum(s.sum() for s in scores) == sum(r.sum() for r in at_once)


def test_points_are_the_games_own():
    """A Space Invader is worth 5 to 30 points, and more than one reward."""
    _, rewards, *_ = play(AtariColourVectorEnv(4, "SpaceInvaders"), 300)
    assert rewards.max() > 1


def test_pictures_are_those_of_ale_in_colour():
    ours = AtariColourVectorEnv(2, "Breakout")
    ales = AtariVectorEnv(
        "breakout", 2, grayscale=False, stack_num=1, reward_clipping=False, num_threads=1
    )
    first, _ = ours.reset(seed=7)
    np.testing.assert_array_equal(first, ales.reset(seed=7)[0][:, 0])
    for action in (1, 2, 3, 0, 1):
        seen, *_ = ours.step(np.full(2, action))
        np.testing.assert_array_equal(seen, ales.step(np.full(2, action))[0][:, 0])
    assert seen.shape == (2, 84, 84, 3) and seen.dtype == np.uint8
    assert (seen[..., 0] != seen[..., 2]).any()  # not grey


def test_time_is_over_after_exactly_so_many_steps_however_late_the_game_began():
    _, rewards, over, truncated, _ = play(AtariColourVectorEnv(4, "Pong", max_episode_steps=20), 70)
    assert {len(r) for r in episodes(rewards, over)} == {20}
    assert not truncated.any()


def test_seeds_decide_when_a_game_begins():
    seen = [AtariColourVectorEnv(6, "AirRaid").reset(seed=seed)[0] for seed in (1, 1, 2)]
    np.testing.assert_array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[0], seen[2])


def test_what_looking_finds_and_what_is_made():
    facts = look(ID, {"game": "Pong", "delayed": True})
    assert facts.vectorised and facts.max_episode_steps == 600
    assert facts.observation_space.shape == (84, 84, 3) and facts.channels == "last"
    env = make_vector(ID, {"game": "Pong"}, 3, look(ID, {"game": "Pong"}, max_episode_steps=1200))
    assert env.unwrapped.max_episode_steps == 1200


def test_the_single_form_is_a_vector_of_one():
    one, many = AtariColourEnv("Bowling", True, 30), AtariColourVectorEnv(1, "Bowling", True, 30)
    np.testing.assert_array_equal(one.reset(seed=5)[0], many.reset(seed=5)[0][0])
    for t in range(30):
        seen, reward, terminated, _, info = one.step(1)
        all_seen, rewards, *_ = many.step(np.array([1]))
        np.testing.assert_array_equal(seen, all_seen[0])
        assert reward == rewards[0] and terminated == (t == 29)
    assert info == {"score": reward}


def test_pictures_to_look_at():
    env = AtariColourEnv("Pong", render_mode="rgb_array")
    seen, _ = env.reset(seed=0)
    np.testing.assert_array_equal(env.render(), seen)


@pytest.mark.parametrize(
    ("env_config", "line"),
    [
        ({"game": "Pnog"}, 'env_config.game: there is no game "Pnog". Did you mean "Pong"?'),
        ({"game": 3}, "env_config.game: expected text, got 3."),
        ({"delay": True}, 'env_config.delay: unknown option. Did you mean "delayed"?'),
    ],
)
def test_mistakes_are_answered_by_one_line(env_config, line):
    with pytest.raises(OptionError) as error:
        look(ID, env_config)
    assert str(error.value) == line
