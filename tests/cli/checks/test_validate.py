"""Bad input is answered by one line that names the key, before Ray starts or a file is written."""

import pytest

from rllib_conspec.cli.checks.experiment import Experiment
from rllib_conspec.cli.checks.validate import validate

KEYS1 = """\
keys1:
  run: ConSpec
  env: rllib_conspec:MultiKeyToDoor-v0
  stop: {training_iteration: 500}
  checkpoint_config: {checkpoint_frequency: 50}
  config:
    env_config: {keys: 1}
    episodes_per_batch: 16
    episodes_per_minibatch: 4
    num_env_runners: 2
    lr: 0.0002
    model_config: {encoder: conv, encoder_dim: 512, core_dim: 512}
    conspec:
      num_prototypes: 8
    reward_models:
      rnd: {dim: 8}
"""


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
            "    lr: 0.0002",
            "    auxiliary: {distil: {}}",
            "restore: the auxiliary loss distil is for a policy that is trained already; name",
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
            "core_dim",
            "coredim",
            'config.model_config.coredim: unknown option. Did you mean "core_dim"?',
        ),
        ("core_dim: 512", "core_dim: big", "config.model_config.core_dim: expected a whole number"),
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
        (
            "rnd:",
            "rndd:",
            "config.reward_models.rndd: unknown reward model; there are conspec, rnd, rrd, "
            'rudder, synthrs, tvt, and import paths package.module:Class. Did you mean "rnd"?',
        ),
        (
            "{dim: 8}",
            "{num_prototypes: 8}",
            "config.reward_models.rnd.num_prototypes: is an option of conspec, not of rnd.",
        ),
        ("{dim: 8}", "{dim: 0}", "config.reward_models.rnd.dim: must be at least 1"),
        ("{dim: 8}", "3", "config.reward_models.rnd: must be a mapping of options, not 3."),
        ("{dim: 8}", "{encoder: mpl}", "config.reward_models.rnd.encoder: must be one of"),
        ("rnd:", "nowhere:RND:", "config.reward_models.nowhere:RND: cannot import"),
        ("lr: 0.0002", "entropy_coeff: .inf", "config.entropy_coeff: must be a finite number"),
        ("lr: 0.0002", "lr: [[0, 1e-3], [9, .nan]]", "config.lr: must be a finite number, not nan"),
        ("{keys: 1}", "{keys: .inf}", "config.env_config.keys: must be a finite number, not inf."),
        ("{dim: 8}", "{coeff: -.inf}", "config.reward_models.rnd.coeff: must be a finite number"),
        (
            "lr: 0.0002",
            "lr: {grid_search: [0.1, .inf]}",
            "config.lr: must be a finite number, not inf.",
        ),
        (
            "lr: 0.0002",
            "lr: {grid_serach: [0.1, 0.2]}",
            'config.lr.grid_serach: unknown option. Did you mean "grid_search"?',
        ),
        (
            "{keys: 1}",
            "{keys: {grid-search: [1, 2]}}",
            'config.env_config.keys.grid-search: unknown option. Did you mean "grid_search"?',
        ),
        (
            "encoder_dim: 512",
            "encoder_dim: 100000000",
            "config.model_config.encoder_dim: the networks need about ",
        ),
        (
            "core_dim: 512",
            "core_dim: 1000000000000",
            "config.model_config.core_dim: the networks need more than can be counted",
        ),
        (
            "num_prototypes: 8",
            "encoder_dim: 10000000000",
            "config.conspec.encoder_dim: the networks need about ",
        ),
        (
            "{dim: 8}",
            "{dim: 10000000}",
            "config.reward_models.rnd.dim: the networks need about ",
        ),
        (
            "training_iteration: 500",
            "conspec/frozen: 3, rndd/anything: 1",
            "stop.rndd/anything: unknown metric.",
        ),
        ("lr: 0.0002", "success: gaol", "config.success: must be sparse, goal, top_k or an import"),
        (
            "lr: 0.0002",
            "reward_scale: sing",
            "config.reward_scale: must be a number above 0 or sign",
        ),
        (
            "    conspec:\n      num_prototypes: 8",
            "    success: top_k\n    conspec:\n      max_new_successes: 16",
            "config.conspec.max_new_successes: is 16: with success top_k, all 16 episodes of a ",
        ),
        ("lr: 0.0002", "preset: papr", "config.preset: must be one of few_successes, paper"),
        ("lr: 0.0002", "facts: 3", "config.facts: unknown option."),
        (
            "lr: 0.0002",
            "rnd: {}",
            "config.rnd: unknown option. Write it as reward_models: {rnd: …}.",
        ),
        ("lr: 0.0002", "max_episode_steps: 0", "config.max_episode_steps: "),
        ("lr: 0.0002", "observation_key: camera", "config.observation_key: "),
    ],
)
def test_a_mistake_in_a_file(refused, tmp_path, right, wrong, line):
    assert right in KEYS1
    (tmp_path / "bad.yaml").write_text(KEYS1.replace(right, wrong))
    assert refused("train", "-f", "bad.yaml").startswith(f"bad.yaml: keys1.{line}")


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
        (
            ["--config", "{conspec: {}}"],
            "--config: conspec: this algorithm takes no reward models; use run: ConSpec.",
        ),
        (
            ["--config", "{reward_models: {rnd: {}}}"],
            "--config: reward_models: this algorithm takes no reward models; use run: ConSpec or "
            "WholeEpisodePPO.",
        ),
        (["--config", "{entropy_coeff: .inf}"], "--config: entropy_coeff: must be a finite number"),
        (
            ["--config", "{model_config: {fcnet_hiddens: [1000000, 1000000]}}"],
            "--config: model_config.fcnet_hiddens: the networks need about 32 TB, this machine has",
        ),
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


@pytest.mark.parametrize("lr", [{"grid_search": [0.1, 0.2]}, {"uniform": [0.1, 0.2]}])
def test_every_value_of_a_sweep_is_built(lr):
    experiment = Experiment(name="x", run="PPO", env="CartPole-v1", config={"lr": lr})
    assert [config.lr for config in validate(experiment)] == [0.1, 0.2]


@pytest.mark.parametrize("metric", ["success_rate", "success_rate_20"])
def test_a_run_whose_success_is_relative_cannot_stop_at_a_success_rate(refused, tmp_path, metric):
    text = KEYS1.replace("training_iteration: 500", f"env_runners/{metric}: 0.9")
    (tmp_path / "bad.yaml").write_text(text.replace("lr: 0.0002", "success: top_k"))
    line = refused("train", "-f", "bad.yaml")
    assert line.startswith(f"bad.yaml: keys1.stop.env_runners/{metric}: with success top_k")
    (tmp_path / "bad.yaml").write_text(
        text.replace("lr: 0.0002", "success: {grid_search: [goal, top_k]}")
    )
    assert "with success top_k" in refused("train", "-f", "bad.yaml")


def test_infinity_is_taken_where_it_switches_something_off():
    for run, env in (("PPO", "CartPole-v1"), ("WholeEpisodePPO", "CartPole-v1")):
        config = {"vf_clip_param": float("inf")}
        (checked,) = validate(Experiment(name="x", run=run, env=env, config=config))
        assert checked.vf_clip_param == float("inf")


def test_a_number_that_is_not_finite_in_a_python_file(refused, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from rllib_conspec import WholeEpisodePPOConfig\n"
        "config = WholeEpisodePPOConfig().environment('CartPole-v1')\n"
        "config.entropy_coeff = float('nan')\n"
    )
    line = refused("train", "-f", "mine.py")
    assert line == "mine.py: mine.config.entropy_coeff: must be a finite number, not nan."
