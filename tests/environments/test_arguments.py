from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec
from rooms import Walk

from rllib_conspec.environments.arguments import arguments, check_arguments
from rllib_conspec.environments.finding import find
from rllib_conspec.errors import OptionError

WALK = EnvSpec("Walk-v0", Walk)


class Anything(Walk):
    def __init__(self, size: int = 3, **options: Any):
        super().__init__()


class ForRLlib(Walk):
    def __init__(self, config: dict | None = None):
        super().__init__(**(config or {}))


def said(spec, env_config):
    with pytest.raises(OptionError) as raised:
        check_arguments(spec, env_config)
    return str(raised.value)


def test_names_and_types_are_checked_against_the_signature():
    check_arguments(WALK, {"far": 3, "scale": 2, "max_episode_steps": 9, "render_mode": None})
    assert said(WALK, {"fra": 3}) == 'fra: unknown option. Did you mean "far"?'
    assert said(WALK, {"far": "x"}) == 'far: expected a whole number, got "x".'
    assert said(WALK, {"max_episode_steps": "9"}).startswith("max_episode_steps: expected a whole")


def test_options_of_the_other_form_are_worth_a_hint():
    spec = find("ALE/Pong-v5")
    assert said(spec, {"grayscal": True}) == 'grayscal: unknown option. Did you mean "grayscale"?'
    check_arguments(spec, {"grayscale": True}, vector=True)
    with pytest.raises(OptionError, match="obs_type"):
        check_arguments(spec, {"obs_type": "ram"}, vector=True)


def test_who_takes_anything_is_asked_nothing():
    check_arguments(EnvSpec("Anything-v0", Anything), {"whatever": 1})
    check_arguments(find(ForRLlib), {"whatever": 1})


def test_environments_written_for_rllib_get_the_whole_dict():
    spec = EnvSpec("ForRLlib-v0", ForRLlib)
    check_arguments(spec, {"far": 3})
    assert arguments(spec, {"far": 3}) == {"config": {"far": 3}}
    assert arguments(spec, {"config": {"far": 3}}) == {"config": {"far": 3}}
    assert arguments(spec, {}) == {}
    assert arguments(find(ForRLlib), {"far": 3}) == {"env_config": {"far": 3}}
    assert gym.make(spec, **arguments(spec, {"far": 3})).unwrapped.far == 3


def test_a_render_mode_is_passed_on_to_who_knows_it():
    assert arguments(WALK, {"far": 3}, "rgb_array") == {"far": 3, "render_mode": "rgb_array"}
    assert arguments(WALK, {}, "ansi") == {}
    assert arguments(find("rllib_conspec:Unity-v0"), {}, "rgb_array") == {}
    given = {"far": 3}
    assert arguments(find(ForRLlib), given, "rgb_array") == {
        "env_config": {"far": 3, "render_mode": "rgb_array"}
    }
    assert given == {"far": 3}
