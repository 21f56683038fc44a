"""How a sweep is run: every mistake costs one line that names file, key and fix."""

import pytest
import yaml
from ray import tune

from rllib_conspec import ConSpecConfig
from rllib_conspec.cli.checks.experiment import load_experiments
from rllib_conspec.cli.checks.sweep import Asha, scheduler_of, search_of, trials_of
from rllib_conspec.cli.checks.validate import validate
from rllib_conspec.errors import UserError

SWEEP = {
    "run": "ConSpec",
    "env": "rllib_conspec:MultiKeyToDoor-v0",
    "stop": {"training_iteration": 60},
    "num_samples": 6,
    "scheduler": {"asha": {"grace_period": 5}},
    "config": {"env_config": {"keys": 1}, "lr": {"loguniform": [1e-5, 1e-2]}, "seed": 3},
}


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """The experiment of a file: SWEEP with other settings."""
    monkeypatch.chdir(tmp_path)

    def load(overrides=None, **settings):
        config = SWEEP["config"] | settings.pop("config", {})
        (tmp_path / "s.yaml").write_text(
            yaml.safe_dump({"s": SWEEP | settings | {"config": config}})
        )
        (experiment,) = load_experiments("s.yaml", overrides or {})
        return experiment

    return load


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {"scheduler": "ahsa"},
            "scheduler: must be one of fifo, asha, pbt, median_stopping, ",
        ),
        ({"scheduler": {"asha": {}, "pbt": {}}}, "scheduler: expected one of fifo, asha"),
        ({"scheduler": {"asha": 3}}, "scheduler.asha: expected a mapping, got 3."),
        (
            {"scheduler": {"asha": {"maxt": 3}}},
            "scheduler.asha.maxt: unknown option. Did you mean ",
        ),
        ({"scheduler": {"asha": {"max_t": 0}}}, "scheduler.asha.max_t: must be at least 1, not 0."),
        ({"scheduler": "asha", "stop": {}}, "scheduler.asha.max_t: missing. Give it, or training_"),
        (
            {"scheduler": {"asha": {"max_t": 5, "grace_period": 9}}},
            "scheduler.asha.grace_period: is 9, but a trial ends at 5.",
        ),
        (
            {"scheduler": {"pbt": {"quantile_fraction": 0.6}}},
            "scheduler.pbt.quantile_fraction: ",
        ),
        ({"scheduler": "pbt", "num_samples": 1}, "num_samples: pbt needs 2 trials or more."),
        (
            {"scheduler": "pbt", "config": {"lr": 0.1}},
            "scheduler: pbt needs values to draw",
        ),
        (
            {"search": "optnua"},
            'search: must be one of random, optuna, not "optnua". Did you',
        ),
        ({"search": {"optuna": {"seed": -1}}}, "search.optuna.seed: must be at least 0, not -1."),
        ({"search": "optuna", "num_samples": 1}, "num_samples: optuna needs 2 trials or more."),
        (
            {"search": "optuna", "config": {"lr": 0.1}},
            "search: optuna needs values to draw",
        ),
        ({"search": "optuna", "scheduler": "pbt"}, "search: pbt changes values by itself; leave"),
        (
            {"search": "optuna", "config": {"gamma": {"grid_search": [0.9, 1]}}},
            "config.gamma: optuna draws values; write choice instead of grid_search.",
        ),
        ({"metric": "env_runners/sucess_rate"}, "metric: unknown metric. Did you mean"),
        ({"mode": "maximum"}, "mode: must be one of max, min"),
        ({"max_concurrent": 0}, "max_concurrent: must be at least 1, got 0."),
        ({"config": {"lr": {"loguniform": [0, 1]}}}, "config.lr: loguniform needs numbers above 0"),
        (
            {"config": {"gamma": {"uniform": [0.9, 1.1]}}},
            "config.gamma: must be at most 1",
        ),
        (
            {"config": {"conspec": {"intrinsic_coeff": {"uniform": [-0.1, 1]}}}},
            "config.conspec.intrinsic_coeff: must be at least 0.0, not -0.1.",
        ),
        (
            {"config": {"episodes_per_minibatch": {"choice": [4, 4, 4, 32]}}},
            "config.episodes_per_minibatch: is 32, more than episodes_per_batch (16).",
        ),
        (
            {"scheduler": "pbt", "config": {"model_config": {"core_dim": {"choice": [32, 48]}}}},
            "config.model_config.core_dim: is 32 and 48, but pbt copies networks between trials",
        ),
        (
            {"scheduler": "pbt", "config": {"conspec": {"num_prototypes": {"randint": [2, 9]}}}},
            "config.conspec.num_prototypes: is 2 and 8, but pbt copies networks",
        ),
    ],
)
def test_a_mistake_in_a_sweep(sweep, settings, line):
    with pytest.raises(UserError) as raised:
        validate(sweep(**settings))
    assert str(raised.value).startswith(f"s.yaml: s.{line}")


def test_a_sweep_is_what_the_file_says(sweep):
    experiment = sweep()
    ends = [config.lr for config in validate(experiment)]
    assert ends == [1e-5, 1e-2]
    assert scheduler_of(experiment) == Asha(max_t=60, grace_period=5)
    assert search_of(experiment).seed == 3
    assert trials_of(experiment) == 6
    assert trials_of(sweep(config={"gamma": {"grid_search": [0.9, 1]}})) == 12


def test_a_flag_replaces_the_scheduler_of_the_file(rllib, sweep):
    assert scheduler_of(sweep({"scheduler": {"asha": {"max_t": 7}}})).max_t == 7
    for flag, line in [("ahsa", "must be one of"), ("{asha: {maxt: 3}}", "asha.maxt: unknown")]:
        refusal = rllib("train", "-f", "s.yaml", "--scheduler", flag)
        assert refusal.exit_code == 2
        assert refusal.stderr.startswith(f"rllib: --scheduler: {line}")


def test_samplers_of_tune_in_a_python_file(tmp_path, refused):
    good = (
        "from ray import tune\n"
        "from rllib_conspec import ConSpecConfig\n"
        "config = (\n"
        "    ConSpecConfig()\n"
        "    .environment('rllib_conspec:MultiKeyToDoor-v0', env_config={'keys': 1})\n"
        "    .training(lr=tune.loguniform(1e-5, 1e-2))\n"
        "    .conspec(num_prototypes=4, intrinsic_coeff=tune.uniform(0.1, 0.5))\n"
        "    .rl_module(model_config={'core_dim': tune.choice([16, 32])})\n"
        ")\n"
    )
    (tmp_path / "mine.py").write_text(good)
    (experiment,) = load_experiments(str(tmp_path / "mine.py"), {"num_samples": 2})
    low, high, *_ = validate(experiment)
    assert (low.lr, high.lr) == (1e-5, 1e-2)
    assert low.reward_models["conspec"] == {"num_prototypes": 4, "intrinsic_coeff": 0.1}
    assert [c.model_config["core_dim"] for c in (low, high)] == [16, 32]
    (tmp_path / "mine.py").write_text(good.replace("0.1, 0.5", "-0.1, 0.5"))
    line = refused("train", "-f", "mine.py")
    assert line == (
        "mine.py: mine.config.reward_models.conspec.intrinsic_coeff: "
        "must be at least 0.0, not -0.1."
    )


def test_options_beside_a_sampler_are_checked_at_once():
    config = ConSpecConfig()
    with pytest.raises(ValueError, match="num_prototypes: must be at least 1"):
        config.conspec(intrinsic_coeff=tune.uniform(0, 1), num_prototypes=0)
