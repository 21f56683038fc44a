import json

import pytest
from PIL import Image, ImageSequence

from rllib_conspec.cli.running.evaluate import summary


def test_the_summary_has_quartiles_and_the_success_rate():
    played = [{"return": float(i), "length": 10 + i, "success": i > 2} for i in range(5)]
    episodes, returns, success, length = summary(played)
    assert episodes == "episodes    5"
    assert "mean 2.000  median 2.000  quartiles 1.000 … 3.000" in returns
    assert "40.0%  (2 of 5)" in success
    assert "mean 12.0  min 10  max 14" in length
    for episode in played:
        episode["success"] = None
    assert not any(line.startswith("success") for line in summary(played))


def test_a_run_directory_is_evaluated_and_written_to_a_file(rllib, sweep, tmp_path):
    result = rllib("evaluate", sweep.results / "cart", "--episodes", 4, "--out", "o.json")
    assert result.exit_code == 0, result.output
    assert "checkpoint_000002: CartPole-v1, greedy actions" in result.stdout
    written = json.loads((tmp_path / "o.json").read_text())
    assert len(written["episodes"]) == 4
    assert len({episode["return"] for episode in written["episodes"]}) > 1
    mean = sum(episode["return"] for episode in written["episodes"]) / 4
    assert f"mean {mean:.3f}" in result.stdout


def test_steps_instead_of_episodes_and_an_env_config(rllib, checkpoint):
    limit = ["--env-config", "{max_episode_steps: 5}"]
    result = rllib("evaluate", checkpoint, "--steps", 12, "--explore", *limit)
    assert result.exit_code == 0, result.output
    assert "sampled actions" in result.stdout
    assert "episodes    3" in result.stdout and "max 5" in result.stdout


def test_a_seed_repeats_the_episodes(rllib, checkpoint):
    flags = ["--episodes", 3, "--explore", "--seed"]
    outputs = [rllib("evaluate", checkpoint, *flags, seed).stdout for seed in (1, 1, 2)]
    assert outputs[0] == outputs[1] != outputs[2]


def test_episodes_are_drawn(rllib, checkpoint, tmp_path):
    limit = ["--env-config", "{max_episode_steps: 3}"]
    result = rllib("evaluate", checkpoint, "--episodes", 2, "--render", "gifs", *limit)
    assert result.exit_code == 0, result.output
    files = sorted((tmp_path / "gifs").iterdir())
    assert [file.name for file in files] == ["episode_001.gif", "episode_002.gif"]
    with Image.open(files[0]) as picture:
        shown = [frame.info["duration"] for frame in ImageSequence.Iterator(picture)]
    # 3 steps and the picture before them; equal ones are shown once, for longer.
    assert len(shown) > 1 and sum(shown) == 4 * 80


BLIND = """\
import gymnasium as gym


class Blind(gym.Env):
    observation_space = gym.make("CartPole-v1").observation_space
    action_space = gym.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), 1.0, self.steps == 4, False, {"is_success": True}
"""


def test_another_environment_by_its_class(rllib, refused, checkpoint, tmp_path):
    (tmp_path / "blind.py").write_text(BLIND)
    result = rllib("evaluate", checkpoint, "--env", "blind:Blind", "--episodes", 2)
    assert result.exit_code == 0, result.output
    assert "blind:Blind, greedy actions" in result.stdout
    assert "mean 4.000" in result.stdout and "100.0%  (2 of 2)" in result.stdout
    line = refused("evaluate", checkpoint, "--env", "blind:Blind", "--render", "gifs")
    assert line.startswith("--render: blind:Blind")


@pytest.mark.parametrize("name", ["kezs", "max_episode_stepz"])
def test_a_misspelt_env_config_is_refused(refused, checkpoint, name):
    line = refused("evaluate", checkpoint, "--env-config", f"{{{name}: 1}}")
    assert line.startswith(f"config.env_config.{name}: unknown option.")
