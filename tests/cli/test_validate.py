"""Bad input is answered by one line that names the key, before Ray starts or a file is written."""

from pathlib import Path

import pytest

from rllib_conspec.cli.experiment import Experiment
from rllib_conspec.cli.validate import validate, variants

KEYS1 = (Path(__file__).resolve().parents[2] / "tuned_examples" / "keys1.yaml").read_text()


@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [
        (
            "num_prototypes:",
            "num_prototypez:",
            'config.conspec.num_prototypez: unknown option. Did you mean "num_prototypes"?',
        ),
        (
            "num_prototypes: 8",
            "num_prototypes: 0",
            "config.conspec.num_prototypes: must be at least 1",
        ),
        (
            "num_prototypes: 8",
            "num_prototypes: eight",
            "config.conspec.num_prototypes: must be a whole",
        ),
        (
            "num_prototypes: 8",
            "num_prototypes: {grid_search: [8, 0]}",
            "config.conspec.num_prototypes: must be at least 1",
        ),
        (
            "episodes_per_batch",
            "episode_per_batch",
            'config.episode_per_batch: unknown option. Did you mean "episodes_per_batch"?',
        ),
        (
            "episodes_per_batch: 16",
            "episodes_per_batch: many",
            'config.episodes_per_batch: expected a whole number, got "many".',
        ),
        ("minibatch: 4", "minibatch: 64", "config.episodes_per_minibatch: is 64, more than"),
        ("num_env_runners: 2", "num_env_runners: -1", "config.num_env_runners: must be at least 0"),
        ("{keys: 1}", "{kezs: 1}", 'config.env_config.kezs: unknown option. Did you mean "keys"?'),
        ("{keys: 1}", "{keys: one}", "config.env_config.keys: expected a whole number"),
        ("{keys: 1}", "{keys: 9}", "config.env_config.keys: "),
        ("{keys: 1}", "3", "config.env_config: expected a mapping, got 3."),
        (
            "gru_dim",
            "grudim",
            'config.model_config.grudim: unknown option. Did you mean "gru_dim"?',
        ),
        ("gru_dim: 512", "gru_dim: big", "config.model_config.gru_dim: expected a whole number"),
        ("{encoder: conv,", "{encoder: cnov,", "config.model_config.encoder: must be one of"),
        (
            "MultiKeyToDoor-v0",
            "MultiKeyToDor-v0",
            'env: unknown environment "rllib_conspec:MultiKeyToDor-v0". '
            'Did you mean "rllib_conspec:MultiKeyToDoor-v0"?',
        ),
        ("rllib_conspec:M", "rllib_konspec:M", 'env: cannot import "rllib_konspec"'),
        (
            "run: ConSpec",
            "run: Conspek",
            'run: unknown algorithm "Conspek". Did you mean "ConSpec"?',
        ),
        (
            "training_iteration",
            "training_iterations",
            'stop.training_iterations: unknown metric. Did you mean "training_iteration"?',
        ),
        (
            "training_iteration: 500",
            "training_iteration: soon",
            'stop.training_iteration: expected a number, got "soon".',
        ),
        (
            "checkpoint_frequency",
            "checkpoint_freq",
            "checkpoint_config.checkpoint_freq: unknown option. "
            'Did you mean "checkpoint_frequency"?',
        ),
        ("  stop:", "  stopp:", 'stopp: unknown option. Did you mean "stop"?'),
        ("  env: rllib_conspec:MultiKeyToDoor-v0\n", "", "env: missing."),
    ],
)
def test_a_mistake_in_a_file(refused, tmp_path, right, wrong, line):
    assert right in KEYS1
    (tmp_path / "bad.yaml").write_text(KEYS1.replace(right, wrong))
    assert refused("train", "-f", "bad.yaml").startswith(f"bad.yaml: keys1.{line}")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "bad.yaml: empty file."),
        ("- a\n- b", "bad.yaml: expected a mapping of experiment names to settings"),
        ("a: 3", "bad.yaml: a: expected a mapping, got 3."),
        ("run: PPO\nenv: CartPole-v1", 'bad.yaml: "run" stands at the top'),
        ("a:\n  run: [PPO\n  env: x", "bad.yaml: line 3, column 6: "),
        ("a:\n  run: PPO\n  run: SAC", 'bad.yaml: line 3, column 3: the key "run" is given twice.'),
    ],
)
def test_a_file_that_is_no_experiment(refused, tmp_path, text, line):
    (tmp_path / "bad.yaml").write_text(text)
    assert refused("train", "file", "bad.yaml").startswith(line)


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (
            ["--config", "{num_epoch: 3}"],
            '--config: num_epoch: unknown option. Did you mean "num_epochs"?',
        ),
        (["--config", "{lr: fast}"], "--config: lr: expected a number or a list or null"),
        (["--config", "{gamma: 1.5}"], "--config: gamma: must be at most 1"),
        (
            ["--config", "{sgd_minibatch_size: 3}"],
            "--config: sgd_minibatch_size: RLlib no longer uses it.",
        ),
        (["--config", "{conspec: {}}"], "--config: conspec: this algorithm has no ConSpec"),
        (["--config", "[1"], "--config: line 1, column 3: "),
        (["--config", "3"], "--config: expected a mapping"),
        (
            ["--config", "{model_config: {fcnet_hidden: [3]}}"],
            '--config: model_config.fcnet_hidden: unknown option. Did you mean "fcnet_hiddens"?',
        ),
        (
            ["--config", "{minibatch_size: 128, train_batch_size_per_learner: 64}"],
            "--config: `minibatch_size` (128) must be <= `train_batch_size_per_learner` (64).",
        ),
        (
            ["--env", "CartPol-v1"],
            '--env: unknown environment "CartPol-v1". Did you mean "CartPole-v1"?',
        ),
        (["--run", "PPP"], '--run: unknown algorithm "PPP". Did you mean "PPO"?'),
        (["--stop", "{episode_reward_mean: 3}"], "--stop: episode_reward_mean: unknown metric."),
        (["--storage-path", "/proc/x"], "--storage-path: /proc/x is not writable."),
        (["--restore", "nowhere"], "--restore: nowhere: no such checkpoint."),
        (["--resume"], "--resume: no earlier run of PPO_CartPole-v1 in results."),
        (
            ["--resume", "--config", "{}"],
            "--config: a resumed run keeps the settings it began with.",
        ),
    ],
)
def test_a_mistake_in_a_flag(refused, flags, line):
    given = {"--run": "PPO", "--env": "CartPole-v1"}
    base = [word for pair in given.items() if pair[0] not in flags for word in pair]
    assert refused("train", *base, *flags).startswith(line)


def test_a_missing_file(refused):
    assert refused("train", "-f", "nope.yaml") == "nope.yaml: no such file."


def test_what_rllib_allows_is_allowed():
    experiment = Experiment(
        name="x",
        run="PPO",
        env="CartPole-v1",
        stop={"env_runners/episode_return_mean": 450, "env_runners/my_return": 0.1},
        config={
            "lr": [[0, 1e-3], [1000000, 1e-4]],
            "gamma": 1,
            "lambda": 0.9,
            "grad_clip": None,
            "num_cpus_per_learner": "auto",
            "env_config": {"max_episode_steps": 50},
            "model_config": {"fcnet_hiddens": [32], "use_lstm": True},
            "seed": 1,
        },
    )
    (config,) = validate(experiment)
    assert config.lambda_ == 0.9
    assert config.model_config["fcnet_hiddens"] == [32]
    assert config.env_config == {"max_episode_steps": 50}


def test_every_combination_of_a_grid_is_built():
    grid = {"grid_search": [1, 2]}
    settings = {"a": grid, "b": {"c": {"grid_search": [3, 4]}, "d": 5}}
    combinations = list(variants(settings))
    assert len(combinations) == 4
    assert {"a": 2, "b": {"c": 3, "d": 5}} in combinations
    experiment = Experiment(
        name="x", run="PPO", env="CartPole-v1", config={"lr": {"grid_search": [0.1, 0.2]}}
    )
    assert [config.lr for config in validate(experiment)] == [0.1, 0.2]


@pytest.mark.parametrize(
    ("run", "env"),
    [
        ("APPO", "CartPole-v1"),
        ("IMPALA", "CartPole-v1"),
        ("DQN", "CartPole-v1"),
        ("SAC", "Pendulum-v1"),
    ],
)
def test_other_algorithms_of_rllib_by_name(run, env):
    (config,) = validate(
        Experiment(name="x", run=run, env=env, config={"lr": None if run == "SAC" else 1e-3})
    )
    assert config.algo_class.__name__ == run


def test_a_network_that_does_not_fit_the_observations(refused):
    line = refused("train", "--run", "ConSpec", "--env", "CartPole-v1")
    assert "encoder 'conv' needs observations of shape (height, width, channels)" in line
