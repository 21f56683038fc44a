from pathlib import Path

from trials_on_disk import write_trial

from rllib_conspec.report.groups import find_labelled, group_trials
from rllib_conspec.report.trials import read_trial


def groups(*paths, labels=None):
    return {
        g.label: [t.path for t in g.trials]
        for g in group_trials([read_trial(p) for p in paths], labels)
    }


def trial(path: Path, algorithm="A", **params):
    return write_trial(path, [1.0], {"env": "e"} | params, algorithm=algorithm)


def test_trials_that_differ_only_in_their_seed_are_one_group(tmp_path):
    a = [trial(tmp_path / "x" / f"trial_{i}", seed=i, lr=0.1) for i in range(3)]
    again = trial(tmp_path / "x_2026-01-02_03-04-05" / "trial_0", seed=9, lr=0.1)
    assert groups(*a, again) == {"x": [*a, again]}


def test_groups_of_one_experiment_are_told_apart_by_what_they_differ_in(tmp_path):
    deep = {"conspec": {"coeff": 0.2, "same": 1}}
    a = trial(tmp_path / "x" / "trial_0", lr=0.1, reward_models={"conspec": {"same": 1}}, seed=0)
    b = trial(tmp_path / "x" / "trial_1", lr=0.1, reward_models=deep, seed=1)
    c = trial(tmp_path / "x" / "trial_2", lr=0.123456, reward_models=deep, seed=1)
    named = groups(a, b, c)
    assert list(named) == ["x lr=0.1", "x lr=0.1 coeff=0.2", "x lr=0.1235 coeff=0.2"]


def test_another_algorithm_with_the_same_parameters_is_another_group(tmp_path):
    a = trial(tmp_path / "x" / "trial_0", algorithm="PPO")
    b = trial(tmp_path / "y" / "trial_0", algorithm="ConSpec")
    assert groups(a, b) == {"x": [a], "y": [b]}


def test_groups_never_share_a_name(tmp_path):
    a = trial(tmp_path / "one" / "x" / "trial_0", algorithm="PPO")
    b = trial(tmp_path / "two" / "x" / "trial_0", algorithm="ConSpec")
    c = trial(tmp_path / "three" / "x" / "trial_0", algorithm="SAC")
    assert len(groups(a, b, c)) == 3


def test_labels_of_ones_own(tmp_path):
    a = trial(tmp_path / "x" / "trial_0", lr=0.1)
    b = trial(tmp_path / "x" / "trial_1", lr=0.2)
    c = trial(tmp_path / "odd=name" / "trial_0")
    labels = find_labelled([f"mine={tmp_path / 'x'}", str(tmp_path / "odd=name")])
    assert labels == {a: "mine", b: "mine", c: ""}
    assert groups(a, b, c, labels=labels) == {"mine": [a, b], "odd=name": [c]}
