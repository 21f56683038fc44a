"""Saving: a restored learner goes on exactly as the one that was saved."""

import pickle

import numpy as np
import pytest
from learners import checksum, iterate, new_learner, same_weights, until, weights

from rllib_conspec.reward_models.conspec.learner import ConSpecLearner

STATES = {
    "plain": {"memory_batch": 2},
    "ages": {
        "memory_batch": 6,
        "memory": "ages",
        "memory_size": 30,
        "min_successes": 2,
        "freeze_after": 1,
    },
    "recruit": {"recruit_start": 1, "num_prototypes": 4},
    "distinct": {"freeze_distinct": True},
    "stop_gradient": {"stop_gradient": True, "weight_decay": 1e-3},
    "paper": {"form": "paper"},
}


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("pickled", [False, True])
def test_a_restored_learner_continues_bit_for_bit(name, pickled):
    learner, rng = new_learner(**STATES[name]), np.random.default_rng(0)
    iterate(learner, rng, 25)
    assert learner.memory.frozen  # the state has exemplars in it
    state = pickle.loads(pickle.dumps(learner.get_state())) if pickled else learner.get_state()
    later = np.random.default_rng(7).bit_generator.state

    def go_on(one):
        rng.bit_generator.state = later
        metrics = iterate(one, rng, 10)
        return metrics, weights(one), one

    # The learner goes on first: what it does must not reach the state that was saved.
    expected = go_on(learner)
    for _ in range(2):  # nor must what the restored one does
        restored = new_learner(seed=99, **STATES[name])
        restored.set_state(state)
        found = go_on(restored)
        assert found[0] == expected[0]
        assert same_weights(found[1], expected[1])
        assert (found[2].met == learner.met).all()
        assert (found[2].streak == learner.streak).all()
        assert found[2].iterations == learner.iterations
        assert found[2].memory.seen == learner.memory.seen
        for i in (None, *learner.memory.frozen):
            held, expected_held = (one.memory.examples(i) for one in (found[2], learner))
            assert [*map(checksum, held)] == [*map(checksum, expected_held)]


def test_a_restored_learner_still_shares_episodes():
    learner, rng = new_learner(num_prototypes=2), np.random.default_rng(0)
    until(learner.met.all, learner, rng)
    state = learner.get_state()

    def different(one):
        sets = [one.memory.successes, one.memory.failures]
        sets += [s for e in one.memory.exemplars.values() for s in (e.successes, e.failures)]
        return len({id(e) for s in sets for e in s})

    restored = new_learner(num_prototypes=2)
    restored.set_state(state)
    assert different(restored) == different(learner) == len(state["memory"]["episodes"]["episodes"])


def test_a_state_is_enough_to_look_at_a_learner():
    learner, rng = new_learner(num_prototypes=2), np.random.default_rng(0)
    iterate(learner, rng, 8)
    found = ConSpecLearner.from_state(pickle.loads(pickle.dumps(learner.get_state())))
    assert found.options == learner.options
    assert same_weights(weights(found), weights(learner))
    assert checksum(found.memory.successes) == checksum(learner.memory.successes)
    assert found.step() == learner.step()


def test_a_state_says_how_observations_are_read():
    options = new_learner().options
    learner = ConSpecLearner(options, (4,), seed=0, observation_range=20.0, channels="last")
    found = ConSpecLearner.from_state(learner.get_state())
    assert float(found.model.encoder.observation_range) == 20.0
    assert float(new_learner().model.encoder.observation_range) == 1.0
