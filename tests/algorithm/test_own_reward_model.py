"""A reward model of a user's own: the one of docs/extending.md, in a file of the current directory,
through the real command, with remote workers.
"""

import json
import os
import pickle
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from inside import comparable
from tiny import EAGER, KEYS

from rllib_conspec.reward_models.together import models_in

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text()
VISITS = re.search(r"<!-- visits.py -->\n```python\n(.*?)```", PAGE, re.DOTALL)[1]
# Counts well once, then no more.
FORGETFUL = """\
from visits import Visits


class Forgetful(Visits):
    def update(self, episodes):
        if self.seen:
            raise RuntimeError("lost count")
        return super().update(episodes)
"""
ITERATIONS = 5


def experiment(**config):
    return {
        "run": "WholeEpisodePPO",
        "env": KEYS,
        "stop": {"training_iteration": ITERATIONS},
        "checkpoint_config": {"checkpoint_frequency": 2},
        "config": {
            "env_config": {"keys": 1},
            "episodes_per_batch": 8,
            "num_env_runners": 2,
            "num_envs_per_env_runner": 4,
            "model_config": {"encoder_dim": 8, "core_dim": 8},
            "seed": 1,
            **config,
        },
    }


# Workers take seconds to start: two where they share what is paid, one where two models pay, none
# where the learner fails.
EXPERIMENTS = {
    "forgetful": experiment(reward_models={"forgetful:Forgetful": {}}, num_env_runners=0),
    "alone": experiment(reward_models={"visits:Visits": {"coeff": 0.2}}),
    "together": experiment(
        preset="paper",
        success="top_k",
        num_env_runners=1,
        reward_models={"conspec": EAGER, "visits:Visits": {"coeff": 0.2}},
    ),
}


@dataclass
class Run:
    code: int
    output: str
    results: Path

    def lines(self, experiment):
        """What was printed about one experiment."""
        lines = self.output.splitlines()
        first = next(i for i, x in enumerate(lines) if x.startswith(f"{experiment}  iteration 1"))
        last = next(
            i for i, x in enumerate(lines) if x.startswith(f"Results: results/{experiment}")
        )
        return lines[first:last]

    def trial(self, experiment):
        return self.results / experiment / "trial_0"

    def rows(self, experiment):
        text = (self.trial(experiment) / "result.json").read_text()
        return [json.loads(line) for line in text.splitlines()]


def models_of(checkpoint):
    """The models' states in a checkpoint, by name."""
    learner = (checkpoint / "learner_group" / "learner" / "state.pkl").read_bytes()
    return models_in(pickle.loads(learner)["reward_model"])


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """`rllib train` on these experiments, in the directory that has the models' files."""
    here = tmp_path_factory.mktemp("own")
    (here / "visits.py").write_text(VISITS)
    (here / "forgetful.py").write_text(FORGETFUL)

    def call(experiments, name):
        (here / f"{name}.yaml").write_text(yaml.safe_dump(experiments, sort_keys=False))
        flags = ["-f", f"{name}.yaml", "--storage-path", name, "--ray-num-cpus", "3"]
        done = subprocess.run(
            [Path(sys.executable).parent / "rllib", "train", *flags],
            cwd=here,
            # Without tests/algorithm, which the tests beside this one put there.
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
        )
        output = done.stdout.replace(f"Results: {name}/", "Results: results/")
        return Run(done.returncode, output, here / name)

    return call


@pytest.fixture(scope="module")
def run(train):
    return train(EXPERIMENTS, "first")


@pytest.fixture(scope="module")
def restored(run, train):
    """The same, each from its second iteration on."""
    experiments = {
        name: EXPERIMENTS[name] | {"restore": str(run.trial(name) / "checkpoint_000000")}
        for name in ("alone", "together")
    }
    return train(experiments, "second")


def test_it_trains_and_pays(run):
    rows = run.rows("alone")
    assert [row["training_iteration"] for row in rows] == [*range(1, ITERATIONS + 1)]
    states = [row["visits"]["states"] for row in rows]
    assert states == sorted(set(states)) and states[0] > 50
    # At first every observation is new; then fewer and fewer are.
    paid = [row["env_runners"]["intrinsic_return_mean"] for row in rows]
    assert paid[0] == pytest.approx(0.2 * rows[0]["env_runners"]["episode_len_mean"], rel=1e-4)
    assert 0 < paid[-1] < paid[1] < paid[0]
    # What is shown as return is the environment's own.
    assert all(row["env_runners"]["episode_return_max"] <= 1 for row in rows)


def test_its_metric_and_its_words_are_shown(run):
    lines = run.lines("alone")
    for row, line in zip(run.rows("alone"), lines, strict=False):
        assert f"  states {row['visits']['states']:.4g}  " in line
    last = run.rows("alone")[-1]["visits"]["states"]
    assert any(re.fullmatch(rf"\s*found +{last:.0f} different observations", x) for x in lines)


def test_its_state_is_in_the_checkpoint(run):
    state = models_of(run.trial("alone") / "checkpoint_000000")
    assert list(state) == ["visits:Visits"]
    assert len(state["visits:Visits"]) == run.rows("alone")[1]["visits"]["states"]


@pytest.mark.parametrize("name", ["alone", "together"])
def test_restored_it_continues_to_the_digit(run, restored, name):
    assert restored.code == 0, restored.output
    uninterrupted, continued = run.rows(name)[2:], restored.rows(name)
    assert len(continued) == ITERATIONS - 2
    for expected, got in zip(uninterrupted, continued, strict=True):
        expected, got = comparable(expected), comparable(got)
        assert {"visits/states", "learners/default_policy/policy_loss"} <= expected.keys()
        different = {k: (v, got.get(k)) for k, v in expected.items() if got.get(k) != v}
        assert not different
        assert got.keys() == expected.keys()


def test_with_conspec_both_learn_pay_and_speak(run):
    rows = run.rows("together")
    assert rows[-1]["conspec"]["frozen"] >= 1 and rows[-1]["visits"]["states"] > 50
    assert set(models_of(run.trial("together") / "checkpoint_000000")) == {
        "conspec",
        "visits:Visits",
    }
    lines = run.lines("together")
    assert "frozen" in lines[0] and "states" in lines[0]
    found = [line for line in lines if line.lstrip().startswith("found ")]
    assert any("prototype" in line for line in found)
    assert any("different observations" in line for line in found)


def test_one_that_raises_ends_its_run_with_one_line_and_a_checkpoint(run):
    assert run.code == 1
    assert len(run.rows("forgetful")) >= 1
    lines = run.lines("forgetful")
    (failed,) = [line for line in lines if "lost count" in line]
    assert failed.startswith("rllib: ") and "RuntimeError: lost count" in failed
    assert not any("Traceback" in line for line in lines)
    # Saved as it was after the last update that went well.
    (checkpoint,) = run.trial("forgetful").glob("checkpoint_*")
    counted = run.rows("forgetful")[0]["forgetful"]["states"]
    assert len(models_of(checkpoint)["forgetful:Forgetful"]) == counted
