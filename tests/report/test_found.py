import pickle

import numpy as np
import pytest

from rllib_conspec.errors import UserError
from rllib_conspec.report.found import coverage, find, load_learner

from .conftest import MARK, episode


def checkpoint(path, learner, **others):
    directory = path / "learner_group" / "learner"
    directory.mkdir(parents=True)
    state = {"reward_model": learner.get_state()} | others
    (directory / "state.pkl").write_bytes(pickle.dumps(state))
    return path


def test_names_the_step_that_the_prototype_found(learner):
    found = find(learner)
    assert [f.prototype for f in found] == list(np.flatnonzero(learner.met))
    assert all(f.name == "mark 1" and f.events["mark 1"] == 1.0 for f in found)
    assert all((frame == MARK).all() for f in found for frame in f.frames)
    assert "mark 1 (100% of successes)" in str(found[0])


def test_separation_is_measured_on_the_episodes_given(learner):
    rng = np.random.default_rng(7)
    won = [episode(rng, True) for _ in range(10)]
    lost = [episode(rng, False) for _ in range(10)]
    assert find(learner, won, lost)[0].separation > 0.5
    assert find(learner, lost, lost)[0].separation == pytest.approx(0, abs=1e-6)


def test_a_match_far_from_the_event_does_not_count(learner):
    rng = np.random.default_rng(8)
    won = [episode(rng, True, length=40) for _ in range(10)]
    assert coverage(learner, won) == {"mark 1": 1.0}
    moved = [
        type(e)(e.frames, e.digests, True, tuple(((t + 10) % 40, name) for t, name in e.events))
        for e in won
    ]
    assert coverage(learner, moved)["mark 1"] == 0.0


def test_loads_from_a_checkpoint(learner, tmp_path):
    loaded = load_learner(checkpoint(tmp_path, learner))
    assert [str(f) for f in find(loaded)] == [str(f) for f in find(learner)]


def test_says_what_is_wrong_with_a_checkpoint(learner, tmp_path):
    with pytest.raises(UserError, match="not an RLlib checkpoint"):
        load_learner(tmp_path / "nothing")
    whole = checkpoint(tmp_path / "whole", learner)
    state = whole / "learner_group" / "learner" / "state.pkl"
    state.write_bytes(state.read_bytes()[:1000])
    with pytest.raises(UserError, match="cut short"):
        load_learner(whole)
    state.write_bytes(pickle.dumps({"optimizer": {}}))
    with pytest.raises(UserError, match="no ConSpec"):
        load_learner(whole)
