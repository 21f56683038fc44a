from dataclasses import asdict, fields

import pytest
from click.testing import CliRunner
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from rllib_conspec import auxiliary, reward_models
from rllib_conspec.algorithm.config import RewardModelConfig
from rllib_conspec.algorithm.policy import MODEL_CONFIG
from rllib_conspec.cli import examples
from rllib_conspec.cli.checks.experiment import load_experiments
from rllib_conspec.cli.checks.validate import find_algorithm, validate
from rllib_conspec.cli.main import main
from rllib_conspec.errors import UserError


@pytest.mark.parametrize("name", examples.names())
def test_every_example_is_valid_and_says_what_to_expect(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where there are no results
    file = examples.find(name)
    header = [line for line in file.read_text().splitlines() if line.startswith("#")]
    assert examples.headline(file)
    assert any(line.startswith("# Expected: ") for line in header)
    assert any(line.startswith("# Time: ") for line in header)
    (experiment,) = load_experiments(str(file), {})
    # Names of their own, so that --resume cannot take up another file's run.
    assert experiment.name == file.stem + ("_paper" if name.startswith("paper/") else "")
    if experiment.restore:  # the few-shot tests start from a run that is not there yet
        with pytest.raises(UserError, match=r"restore: .*results/orangetree"):
            validate(experiment)
        start = experiment.restore.removeprefix("results/")
        assert start in {e.name for other in examples.names().values() for e in _loaded(other)}
        experiment.restore = None
        # What is for a trained policy alone is refused without one.
        experiment.config.get("auxiliary", {}).pop("distil", None)
    if "recordings" in experiment.config:  # which have to be made first, as the file says
        with pytest.raises(UserError, match=r"config\.recordings: there is no file"):
            validate(experiment)
        flags = ["-f", str(file), "--all", "--episodes", "2"]
        made = CliRunner().invoke(main, ["record", experiment.config["recordings"], *flags])
        assert made.exit_code == 0, made.output
    validate(experiment)


def _loaded(file):
    return load_experiments(str(file), {})


@pytest.mark.parametrize("name", examples.names())
def test_no_example_repeats_what_it_would_get_anyway(name):
    (experiment,) = _loaded(examples.find(name))
    assert list(_repeated(experiment)) == []


def test_repetitions_are_noticed():
    (experiment,) = _loaded(examples.find("keys3"))
    experiment.config |= {"lr": 0.0005, "model_config": {"core": "gru", "core_dim": 64}}
    experiment.config["conspec"] = {"weight_decay": 0.001, "window": 3}
    experiment.config["auxiliary"] = {"drac": {"coeff": 0.2}}
    assert set(_repeated(experiment)) == {
        "lr",
        "model_config.core",
        "conspec.weight_decay",
        "conspec.window",
        "auxiliary.drac.coeff",
    }


def _repeated(experiment):
    """Keys whose value is what the preset, or the default, says."""
    default = find_algorithm(experiment.run).get_default_config()
    given = dict(experiment.config)
    if isinstance(default, RewardModelConfig):  # RLlib's own have no preset
        if given.get("preset") == default.preset:
            yield "preset"
        default.rewards(preset=given.pop("preset", default.preset))
    # section → what it would hold without the file
    networks = asdict(DefaultModelConfig()) | MODEL_CONFIG
    sections = {"model_config": networks | default._model_config}
    models = {f"reward_models.{n}": v for n, v in given.pop("reward_models", {}).items()}
    models |= {key: given.pop(key) for key in getattr(default, "short_forms", ()) if key in given}
    losses = {f"auxiliary.{n}": v for n, v in given.pop("auxiliary", {}).items()}
    for path in models:
        name = path.removeprefix("reward_models.")
        sections[path] = reward_models.options_of(name, {}, default.preset).to_dict()
    for path in losses:
        name = path.removeprefix("auxiliary.")
        sections[path] = auxiliary.options_of(name, {}, default.preset).to_dict()
    for section, before in sections.items():
        inside = (models | losses).get(section) or given.pop(section, {})
        yield from (f"{section}.{key}" for key, value in inside.items() if before[key] == value)
    yield from (key for key, value in given.items() if getattr(default, key) == value)


def test_a_preset_says_nothing_that_is_a_default():
    """Or the page of options would show a difference where there is none."""
    for name in reward_models.REGISTRY.entries:
        model = reward_models.find_model(name)
        defaults = {f.name: f.default for f in fields(model.Options)}
        for values in model.presets.values():
            assert all(defaults[key] != value for key, value in values.items())


def test_the_environment_of_somebody_else_takes_few_lines():
    for name in ("minigrid_doorkey", "minigrid_doorkey_ppo"):
        lines = examples.find(name).read_text().splitlines()
        assert len([line for line in lines if not line.startswith("#")]) <= 12


def test_list_names_all_with_their_folders(rllib):
    listing = rllib("example", "list").stdout.splitlines()
    assert [line.split()[0] for line in listing] == list(examples.names())
    for name in ("keys2", "paper/keys2", "ablations/keys4_no_freezing", "cluster/orangetree_gpu"):
        assert name in examples.names()
    assert any(line.endswith("  Multi-key-to-door, 2 keys: ConSpec on PPO") for line in listing)


def test_get_and_the_nearest_name(rllib):
    assert rllib("example", "get", "keys2").stdout == examples.find("keys2").read_text()
    paper = rllib("example", "get", "paper/keys2").stdout
    assert paper == examples.find("tuned_examples/paper/keys2.yaml").read_text()
    assert "keys2_paper:" in paper
    assert rllib("example", "get", "keys4_no_freezing").exit_code == 0
    unknown = rllib("example", "get", "key2")
    assert unknown.exit_code == 2
    assert unknown.stderr == 'rllib: no example "key2". Did you mean "keys2"?\n'


def test_names_are_completed():
    assert examples.complete(None, None, "keys3") == ["keys3", "keys3_ppo"]
    assert "paper/keys3_ppo" in examples.complete(None, None, "paper/")
