"""`rllib found` on a checkpoint of a real run, and the lines that end every run."""

import pickle

import numpy as np
import pytest

from rllib_conspec.cli.checks.checkpoints import write_manifest
from rllib_conspec.cli.running.found import what_was_found
from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner
from rllib_conspec.reward_models.conspec.options import ConSpecOptions

STATE = "learner_group/learner/state.pkl"


def give(checkpoint, models) -> None:
    """Let the run of this checkpoint have had these reward models (name → state)."""
    state = pickle.loads((checkpoint / STATE).read_bytes())
    state["reward_model"] = {"format": 2, "version": 1, "models": models}
    (checkpoint / STATE).write_bytes(pickle.dumps(state))
    write_manifest(checkpoint)


@pytest.fixture
def conspec(checkpoint):
    """The checkpoint with a prototype that pays in it."""
    options = ConSpecOptions(num_prototypes=2, encoder="mlp", encoder_dim=8, projection_dim=8)
    learner = ConSpecLearner(options, (4,), seed=0)
    rng = np.random.default_rng(0)
    episodes = [
        Episode(rng.normal(size=(11, 4)).astype(np.float32), np.zeros(10, int), np.zeros(10))
        for _ in range(8)
    ]
    learner.add(episodes[:4], episodes[4:])
    learner.met[0] = True
    give(checkpoint, {"conspec": learner.get_state()})
    return checkpoint


@pytest.mark.parametrize("given", ["checkpoint_000002", "."])
def test_tells_and_draws_what_was_found(rllib, conspec, tmp_path, given):
    result = rllib("found", given)
    assert result.exit_code == 0, result.output
    place, found, *_, picture = result.stdout.splitlines()
    assert place == "checkpoint_000002:"
    assert found.startswith("  prototype 0: step ")
    assert picture == "  picture     prototypes.png"
    assert (tmp_path / "prototypes.png").stat().st_size > 1000


def test_pictures_go_where_they_are_wanted(rllib, conspec, tmp_path):
    assert "picture     a/b/prototypes.png" in rllib("found", conspec, "-o", "a/b").stdout
    assert (tmp_path / "a" / "b" / "prototypes.png").exists()
    assert not (tmp_path / "prototypes.png").exists()


def test_a_model_that_found_nothing_to_tell(rllib, checkpoint):
    give(checkpoint, {})
    assert rllib("found", checkpoint).stdout == "checkpoint_000002: nothing to tell.\n"


def test_mistakes_are_answered_by_one_line(refused, checkpoint):
    assert refused("found", "nowhere") == "nowhere: no such checkpoint."
    assert "this run had no reward model" in refused("found", checkpoint)
    give(checkpoint, {"elsewhere:Model": {}})
    assert "elsewhere:Model: cannot import" in refused("found", checkpoint)
    whole = (checkpoint / STATE).read_bytes()
    (checkpoint / STATE).write_bytes(whole[:100])
    assert "checkpoint is cut short" in refused("found", checkpoint)


def test_the_end_of_a_run_is_never_spoiled(conspec, tmp_path):
    found, *_, picture = what_was_found(conspec)
    assert found.startswith("found       prototype 0: step ")
    assert picture.startswith("picture     ") and picture.endswith("prototypes.png")
    give(conspec, {"conspec": {"met": "nonsense"}})
    (line,) = what_was_found(conspec)
    assert line.startswith("found       cannot be shown: ") and "conspec" in line
    assert what_was_found(tmp_path / "in a bucket") == []


def test_a_run_without_reward_models_ends_as_it_did(checkpoint):
    assert what_was_found(checkpoint) == []
