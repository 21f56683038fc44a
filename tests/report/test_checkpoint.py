import pickle

import pytest
from told import Told, write_checkpoint

from rllib_conspec.errors import UserError
from rllib_conspec.report.checkpoint import NoRewardModel, read_config, read_models

TOLD = {"told:Told": {"lines": (), "galleries": {}}}


def state_file(checkpoint):
    return checkpoint / "learner_group" / "learner" / "state.pkl"


def test_every_model_with_its_state(tmp_path):
    checkpoint = write_checkpoint(tmp_path, TOLD)
    assert read_models(checkpoint) == [(Told, {"lines": (), "galleries": {}})]


def test_says_what_is_wrong_with_a_checkpoint(tmp_path):
    with pytest.raises(UserError, match="not an RLlib checkpoint"):
        read_models(tmp_path / "nothing")
    checkpoint = write_checkpoint(tmp_path / "whole", TOLD)
    whole = state_file(checkpoint).read_bytes()
    state_file(checkpoint).write_bytes(whole[:-20])
    with pytest.raises(UserError, match="cut short"):
        read_models(checkpoint)
    state_file(checkpoint).write_bytes(pickle.dumps({"optimizer": {}}))
    with pytest.raises(NoRewardModel, match="had no reward model"):
        read_models(checkpoint)


def test_a_checkpoint_of_an_earlier_version_is_refused(tmp_path):
    checkpoint = write_checkpoint(tmp_path, TOLD)
    before = {"reward_model": {"options": {}, "episodes": {}, "met": []}}
    state_file(checkpoint).write_bytes(pickle.dumps(before))
    with pytest.raises(UserError, match=f"^{tmp_path}: was made by an earlier version"):
        read_models(checkpoint)


def test_a_model_that_is_not_here_is_named(tmp_path):
    checkpoint = write_checkpoint(tmp_path, {"elsewhere.models:Mine": {}})
    with pytest.raises(UserError, match=r"elsewhere\.models:Mine: cannot import") as caught:
        read_models(checkpoint)
    assert "\n" not in str(caught.value)


def test_a_state_that_needs_a_module_that_is_not_here(tmp_path):
    checkpoint = write_checkpoint(tmp_path, TOLD)
    state_file(checkpoint).write_bytes(b"celsewhere\nThing\n.")  # a pickle of elsewhere.Thing
    with pytest.raises(UserError, match=r"needs something that is not here: .*elsewhere"):
        read_models(checkpoint)


def test_a_configuration_that_cannot_be_read_is_none(tmp_path):
    checkpoint = write_checkpoint(tmp_path, TOLD)
    assert read_config(checkpoint) is None
    (checkpoint / "class_and_ctor_args.pkl").write_bytes(b"celsewhere\nThing\n.")
    assert read_config(checkpoint) is None
