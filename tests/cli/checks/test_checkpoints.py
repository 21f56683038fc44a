"""Whole checkpoints are found, broken ones and those of other tasks are refused by one line."""

import json
import pickle

import pytest

from rllib_conspec import ConSpec, ConSpecConfig, WholeEpisodePPO, WholeEpisodePPOConfig
from rllib_conspec.cli.checks import checkpoints
from rllib_conspec.cli.checks.experiment import load_experiments
from rllib_conspec.cli.checks.validate import validate
from rllib_conspec.errors import UserError

STATE = "learner_group/learner/state.pkl"
WEIGHTS = "learner_group/learner/rl_module/default_policy/module_state.pkl"


def test_the_newest_whole_checkpoint_of_a_directory_is_found(sweep):
    newest = sweep.trial / "checkpoint_000002"
    assert checkpoints.find(newest) == newest
    assert checkpoints.find(sweep.trial) == newest
    assert checkpoints.find(sweep.trial.parent).name == "checkpoint_000002"
    assert checkpoints.problem(newest) is None


def test_a_broken_newest_one_is_passed_over(checkpoint):
    older = checkpoint.parent / "checkpoint_000001"
    checkpoint.rename(older)
    checkpoint.mkdir()
    assert checkpoints.find(checkpoint.parent) == older


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize(
    "name", [STATE, WEIGHTS, "class_and_ctor_args.pkl", "rllib_checkpoint.json"]
)
def test_a_missing_or_short_file_is_noticed(checkpoint, name, manifest):
    if not manifest:  # as RLlib itself saves
        (checkpoint / checkpoints.MANIFEST).unlink()
    whole = (checkpoint / name).read_bytes()
    (checkpoint / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"checkpoint is (cut short|incomplete)"):
        checkpoints.find(checkpoint)
    (checkpoint / name).unlink()
    with pytest.raises(UserError, match=r"checkpoint is incomplete: .* missing"):
        checkpoints.find(checkpoint)
    (checkpoint / name).write_bytes(whole)
    assert checkpoints.find(checkpoint) == checkpoint


def test_train_and_evaluate_refuse_a_checkpoint_cut_short(refused, checkpoint):
    (checkpoint / STATE).write_bytes((checkpoint / STATE).read_bytes()[:1000])
    line = refused("train", "--run", "PPO", "--env", "CartPole-v1", "--restore", checkpoint)
    assert line.startswith(f"--restore: {checkpoint}: checkpoint is cut short: {STATE} has 1000 of")
    line = refused("evaluate", checkpoint)
    assert line.startswith(f"{checkpoint}: checkpoint is cut short: {STATE}")


def test_train_and_evaluate_refuse_a_checkpoint_of_another_task(refused, checkpoint):
    flags = ["--restore", checkpoint]
    assert "is a checkpoint of another task: observations" in refused(
        "train", "--run", "PPO", "--env", "Acrobot-v1", *flags
    )
    assert "is a checkpoint of PPO, not of APPO" in refused(
        "train", "--run", "APPO", "--env", "CartPole-v1", *flags
    )
    assert "is a checkpoint of another task: observations" in refused(
        "evaluate", checkpoint, "--env", "Acrobot-v1"
    )


def test_another_environment_with_the_same_spaces_may_go_on_from_a_checkpoint(checkpoint):
    changed = {"restore": str(checkpoint), "config": {"env_config": {"sutton_barto_reward": True}}}
    validate(*load_experiments(None, {"run": "PPO", "env": "CartPole-v1"} | changed))


def test_a_checkpoint_of_other_networks_is_refused(tmp_path, monkeypatch):
    small = WholeEpisodePPOConfig().rl_module(model_config={"encoder": "conv", "core_dim": 8})
    monkeypatch.setattr(checkpoints, "read", lambda path: (WholeEpisodePPO, small))
    larger = WholeEpisodePPOConfig().rl_module(model_config={"encoder": "conv", "core_dim": 16})
    with pytest.raises(UserError, match=r"other networks: model_config.core_dim 8, not 16"):
        checkpoints.check_fits(tmp_path, WholeEpisodePPO, larger, None)
    few, many = ConSpecConfig().conspec(num_prototypes=3), ConSpecConfig()
    monkeypatch.setattr(checkpoints, "read", lambda path: (ConSpec, few))
    with pytest.raises(UserError, match=r"other networks: conspec.num_prototypes 3, not 8"):
        checkpoints.check_fits(tmp_path, ConSpec, many, None)
    checkpoints.check_fits(tmp_path, ConSpec, few.copy().conspec(learn=False), None)


def test_an_encoder_that_was_chosen_is_the_same_as_one_that_is_named(tmp_path, monkeypatch):
    def config(encoder):
        made = WholeEpisodePPOConfig().environment("CartPole-v1")
        made.rl_module(model_config={"encoder": encoder}).rewards(
            models={"rnd": {"encoder": encoder, "dim": 8}}
        )
        made.validate()
        return made

    monkeypatch.setattr(checkpoints, "read", lambda path: (WholeEpisodePPO, config("auto")))
    checkpoints.check_fits(tmp_path, WholeEpisodePPO, config("mlp"), None)


EARLIER = "was made by an earlier version, whose checkpoints cannot be read."


@pytest.mark.parametrize("how", ["module", "options", "state"])
def test_a_checkpoint_of_an_earlier_version_is_refused(refused, checkpoint, made_earlier, how):
    made_earlier(checkpoint, how)
    assert refused("evaluate", checkpoint) == f"{checkpoint}: {EARLIER}"
    flags = ["--run", "ConSpec", "--env", "CartPole-v1", "--restore", checkpoint]
    assert refused("train", *flags) == f"--restore: {checkpoint}: {EARLIER}"


def test_a_checkpoint_that_needs_what_is_not_here_says_so(refused, checkpoint):
    file = checkpoint / "class_and_ctor_args.pkl"
    file.write_bytes(pickle.dumps({"class": Needed}).replace(b"Needed", b"Absent"))
    (checkpoint / checkpoints.MANIFEST).unlink()
    assert "needs something that is not here: Can't get attribute" in refused(
        "evaluate", checkpoint
    )


class Needed:
    pass


def test_what_is_no_checkpoint_at_all(refused, tmp_path):
    assert refused("evaluate", "nowhere") == "nowhere: no such checkpoint."
    (tmp_path / "file").write_text("")
    assert "a checkpoint is a directory" in refused("evaluate", "file")
    (tmp_path / "empty").mkdir()
    assert refused("evaluate", "empty") == "empty: no checkpoint in this directory."


def test_the_manifest_lists_every_file(checkpoint):
    listed = json.loads((checkpoint / checkpoints.MANIFEST).read_text())
    files = [file for file in checkpoint.rglob("*") if file.is_file()]
    assert len(listed) == len(files) - 1
