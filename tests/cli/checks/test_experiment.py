import pytest
import yaml

from rllib_conspec.cli.checks.experiment import deep_merge, load_experiments
from rllib_conspec.errors import UserError

TWO = """\
a:
  run: PPO
  env: CartPole-v1
  stop: {training_iteration: 5}
  num_samples: 3
  checkpoint_config: {checkpoint_frequency: 7, num_to_keep: 4}
  config: {lr: 0.1, env_config: {x: 1, y: 2}}
b: {run: DQN, env: CartPole-v1, storage_path: elsewhere}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(TWO)
    return str(path)


def test_without_flags_the_file_is_taken_as_it_is(file):
    a, b = load_experiments(file, {})
    assert (a.name, a.run, a.num_samples, a.stop) == ("a", "PPO", 3, {"training_iteration": 5})
    assert a.checkpoint_config == {"checkpoint_frequency": 7, "num_to_keep": 4}
    assert (b.name, b.run, b.storage_path, b.num_samples) == ("b", "DQN", "elsewhere", 1)


def test_flags_override_and_nothing_else_does(file):
    overrides = {
        "run": "SAC",
        "config": {"env_config": {"y": 3}, "gamma": 0.5},
        "checkpoint_config": {"checkpoint_frequency": 1},
        "stop": {"time_total_s": 60},
    }
    a, b = load_experiments(file, overrides)
    assert a.config == {"lr": 0.1, "env_config": {"x": 1, "y": 3}, "gamma": 0.5}
    assert a.checkpoint_config == {"checkpoint_frequency": 1, "num_to_keep": 4}
    assert a.stop == {"time_total_s": 60}
    assert a.num_samples == 3
    assert (a.run, b.run) == ("SAC", "SAC")
    assert b.config == {"env_config": {"y": 3}, "gamma": 0.5}


def test_a_grid_replaces_a_mapping_whole():
    grid = {"grid_search": [{"x": 1}, {"x": 2}]}
    assert deep_merge({"env_config": {"y": 1}}, {"env_config": grid}) == {"env_config": grid}
    assert deep_merge({"env_config": grid}, {"env_config": {"y": 1}}) == {"env_config": {"y": 1}}


def test_flags_alone_make_an_experiment():
    (experiment,) = load_experiments(None, {"run": "PPO", "env": "module:Env-v0"})
    assert experiment.name == "PPO_module_Env-v0"
    with pytest.raises(UserError, match="nothing to train"):
        load_experiments(None, {})


def test_one_experiment_can_be_renamed_several_cannot(file, tmp_path):
    with pytest.raises(UserError, match="several experiments: a, b"):
        load_experiments(file, {"name": "c"})
    single = tmp_path / "one.yaml"
    single.write_text("a: {run: PPO, env: CartPole-v1}")
    assert load_experiments(str(single), {"name": "c"})[0].name == "c"


@pytest.mark.parametrize(
    "name", ["../../x", "/tmp/x", "a/../../b", "a/b", "", " ", ".", "..", "a\nb", "x" * 250]
)
def test_a_name_that_leaves_the_storage_path_is_refused(refused, tmp_path, name):
    (tmp_path / "one.yaml").write_text(yaml.safe_dump({name: {"run": "PPO", "env": "CartPole-v1"}}))
    assert refused("train", "-f", "one.yaml").startswith("one.yaml: ")
    flags = ["--run", "PPO", "--env", "CartPole-v1", "--experiment-name", name]
    assert refused("train", *flags).startswith("--experiment-name: ")


def test_names_are_taken_as_they_are_otherwise():
    for name in ("keys2", "a b", "run..2", "größe=3", "v1.0"):
        given = {"run": "PPO", "env": "CartPole-v1", "name": name}
        assert load_experiments(None, given)[0].name == name


def test_a_python_file_gives_a_config_and_stop(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from ray.rllib.algorithms.ppo import PPOConfig\n"
        "config = PPOConfig().environment('CartPole-v1').training(lr=0.5)\n"
        "stop = {'training_iteration': 2}\n"
    )
    (experiment,) = load_experiments(str(path), {"config": {"gamma": 0.5}})
    assert (experiment.name, experiment.env) == ("mine", "CartPole-v1")
    assert experiment.run.__name__ == "PPO"
    assert experiment.stop == {"training_iteration": 2}
    assert experiment.algorithm_config.lr == 0.5
    assert experiment.config == {"gamma": 0.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "expected a variable `config`"),
        ("\nraise KeyError('a')\n", "line 2: KeyError: 'a'"),
        ("x = (\n", "line 1: SyntaxError"),
    ],
)
def test_mistakes_in_a_python_file_take_one_line(tmp_path, text, message):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        load_experiments(str(path), {})


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


def test_a_missing_file(refused):
    assert refused("train", "-f", "nope.yaml") == "nope.yaml: no such file."
