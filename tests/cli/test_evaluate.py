import json

import pytest

from rllib_conspec.cli.evaluate import summary


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


@pytest.mark.parametrize("name", ["kezs", "max_episode_stepz"])
def test_a_misspelt_env_config_is_refused(refused, checkpoint, name):
    line = refused("evaluate", checkpoint, "--env-config", f"{{{name}: 1}}")
    assert line.startswith(f"config.env_config.{name}: unknown option.")
