"""CURL, RAD and RIMs with two remote workers and two learners: all stay equal, go on exactly.

The tests share one algorithm, in the order of this file.
"""

import pytest
from inside import comparable, differences, flat, on_learners
from tiny import MODEL, plain_config

SHARE_SIZES = "learners/__all_modules__/learner_connector_sum_episodes_length_"

RIMS = {"core": "rims", "core_dim": 12, "core_options": {"blocks": 3, "active": 2}}


@pytest.fixture(scope="module")
def pair(ray_local):
    config = plain_config(runners=2).episodes(per_batch=6, per_minibatch=2)
    config.rl_module(model_config={**MODEL, **RIMS})
    config.training(
        lr=0.01, num_epochs=2, auxiliary={"curl": {"latent_dim": 8, "batch": 32}, "rad": {}}
    )
    algo = config.learners(num_learners=2, num_gpus_per_learner=0).build_algo()
    yield algo
    algo.stop()


def held(algo):
    """Policy and auxiliary parts of every learner."""
    return on_learners(
        algo,
        lambda learner: (
            flat(learner.module.get_state())
            | flat({name: part.state_dict() for name, part in learner.auxiliary.items()}, "own")
        ),
    )


def test_learners_begin_and_stay_equal(pair):
    a, b = begun = held(pair)
    assert a == b, "they do not begin equal"
    result = pair.train()
    a, b = held(pair)
    assert differences(a, b) == {}
    for name in ("own/curl/bilinear", "own/curl/latent.weight", "own/curl/keys.1.weight"):
        assert a[name] != begun[0][name], "it has not learned"
    assert any(a[name] != begun[0][name] for name in a if "core." in name), sorted(a)
    shown = result["learners"]["default_policy"]
    assert shown["curl_loss"] > 0 and 0 <= shown["curl_accuracy"] <= 1
    assert "rad_loss" not in shown
    assert result["env_runners"]["num_episodes"] == 6


def test_the_gradients_were_different(pair):
    """Or the test above would hold without any averaging."""

    def drawn(learner):
        seen, part = [], learner.auxiliary["curl"]
        original = part.loss
        part.loss = lambda batch: seen.append(original(batch)) or seen[-1]
        learner.drawn = seen

    on_learners(pair, drawn)
    pair.train()
    a, b = on_learners(pair, lambda learner: [float(x.detach()) for x in learner.drawn])
    assert len(a) == len(b) > 1 and a != b
    a, b = held(pair)
    assert differences(a, b) == {}


def test_restored_it_continues_to_the_digit(pair, tmp_path):
    pair.save_to_path(tmp_path / "checkpoint")
    before = held(pair)
    uninterrupted, after = comparable(pair.train()), held(pair)
    assert before != after
    pair.restore_from_path(tmp_path / "checkpoint")
    assert held(pair) == before
    different = differences(uninterrupted, comparable(pair.train()))
    assert {k: v for k, v in different.items() if not k.startswith(SHARE_SIZES)} == {}
    assert held(pair) == after
