"""Episodes of real vector environments, played again from their seeds and actions."""

import numpy as np
import pytest
from gymnasium import spaces
from ray.rllib.utils.spaces.space_utils import unsquash_action
from told import row

from rllib_conspec.algorithm.ppo import WholeEpisodePPOConfig
from rllib_conspec.environments import make_vector
from rllib_conspec.episodes import Episode
from rllib_conspec.report import replay
from rllib_conspec.report.replay import renders

STEPS = 12


def config_of(env: str) -> WholeEpisodePPOConfig:
    config = WholeEpisodePPOConfig().environment(env)
    config.validate()
    return config


def play(config: WholeEpisodePPOConfig) -> list[Episode]:
    """Two rounds of two episodes with random actions, as a worker would play them."""
    env = make_vector(config.env, config.env_config, 2, config.facts)
    rng = np.random.default_rng(0)
    observations, infos = env.reset(seed=3)
    played = []
    for _ in range(2):
        seen, chosen, seeds = [observations.copy()], [], infos["reset_seed"]
        for _ in range(STEPS):
            if isinstance(env.single_action_space, spaces.Box):
                action = rng.normal(size=(2, 1)).astype(np.float32)
                given = unsquash_action(action, env.single_action_space)
            else:
                action = given = rng.integers(3, size=2)
            observations, *_ = env.step(given)
            seen.append(observations.copy())
            chosen.append(action)
        played += [
            Episode(
                np.stack([o[e] for o in seen]),
                np.stack([a[e] for a in chosen]),
                np.zeros(STEPS),
                seed=int(seeds[e]),
            )
            for e in range(2)
        ]
        observations, *_, infos = env.step(given)  # starts the next episodes
    env.close()
    return played


@pytest.mark.parametrize("name", ["Room", "Pushed"])
def test_shows_what_the_environment_showed_at_that_step(name):
    config = config_of(f"pictured:{name}")
    episodes = play(config)
    shown, trouble = renders(config, row(episodes, [2, 7, 11, 0]).moments)
    assert len(shown) == 4 and not trouble
    for (_, step), picture in shown.items():
        assert picture.shape == (20, 40, 3)
        assert np.flatnonzero((picture == 0).all(axis=(1, 2))).tolist() == [step + 1]
    colours = {tuple(picture[0, 0]) for picture in shown.values()}
    assert len(colours) == 4  # every episode had a seed of its own


def test_several_steps_of_one_episode():
    config = config_of("pictured:Room")
    episode = play(config)[0]
    shown, _ = renders(config, row([episode] * 3, [9, 1, 9]).moments)
    assert sorted(step for _, step in shown) == [1, 9]


def test_no_picture_of_an_episode_that_comes_out_differently():
    config = config_of("pictured:Windy")
    shown, trouble = renders(config, row(play(config), [2, 7, 11, 0]).moments)
    assert shown == {} and "comes out differently" in trouble


@pytest.mark.parametrize("name", ["Dark", "Blank"])
def test_no_picture_where_the_environment_has_none(name):
    config = config_of(f"pictured:{name}")
    assert renders(config, row(play(config), [2, 7, 11, 0]).moments) == ({}, "")


def test_says_why_an_environment_that_has_pictures_shows_none():
    config = config_of("pictured:Screenless")
    shown, trouble = renders(config, row(play(config), [2, 7, 11, 0]).moments)
    assert shown == {} and trouble == "RuntimeError: no screen, no picture"


def test_no_picture_of_an_episode_without_a_seed():
    config = config_of("pictured:Room")
    episode = play(config)[0]
    plain = Episode(episode.observations, episode.actions, episode.rewards)
    assert renders(config, row([plain], [3]).moments) == ({}, "")
    assert renders(None, row([episode], [3]).moments) == ({}, "")


def test_nobody_waits_for_slow_environments(monkeypatch):
    config = config_of("pictured:Room")
    monkeypatch.setattr(replay, "PATIENCE", -1.0)
    shown, trouble = renders(config, row(play(config), [2, 7, 11, 0]).moments)
    assert shown == {} and "takes more than" in trouble
