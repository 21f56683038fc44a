"""What all models promise that attribute rewards to steps: RUDDER, SynthRs, RRD."""

import pickle

import numpy as np
import pytest
import torch
from planted import (
    FORCES,
    PICTURES,
    VECTORS,
    flat,
    learn,
    light_of,
    model,
    planted_batch,
    planted_episode,
    random_episodes,
    trained,
    worker,
)

from rllib_conspec.errors import OptionError
from rllib_conspec.reward_models import find_model, options_of
from rllib_conspec.reward_models.together import Together, pay_alike

NAMES = ("rudder", "synthrs", "rrd")
EAGER = {
    "rudder": {"target": 1e6, "lessons": 4},
    "synthrs": {},
    "rrd": {"drawn": 4},
}  # pay after one batch
BOTH = pytest.mark.parametrize("space", [VECTORS, PICTURES], ids=["vectors", "pictures"])


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def eager(name, *args, **kwargs):
    return model(name, *args, **(EAGER[name] | kwargs))


def busy(name, *args, **kwargs):
    """One that also takes gradient steps."""
    return model(name, *args, **({"rudder": {"target": 0.02}}.get(name, EAGER[name]) | kwargs))


@pytest.mark.parametrize("scale", [1.0, 0.5, "sign"])
def test_what_it_attributes_is_what_the_policy_gets(name, scale):
    own = trained(eager(name, reward_scale=scale))
    episodes = random_episodes(np.random.default_rng(5))
    worth = own._of_all(own.attribute, episodes)
    for e, paid, expected in zip(episodes, own.reward(episodes), worth, strict=True):
        assert paid.dtype == np.float32 and paid.shape == e.rewards.shape
        environments = np.sign(e.rewards) if scale == "sign" else e.rewards * scale
        np.testing.assert_allclose(environments + paid, expected, atol=1e-6)


def test_an_episode_is_paid_the_same_alone_and_among_longer_ones(name):
    own = trained(eager(name))
    episodes = random_episodes(np.random.default_rng(5), count=6)
    assert len({len(e) for e in episodes}) > 2
    for e, paid in zip(episodes, own.reward(episodes), strict=True):
        np.testing.assert_allclose(own.reward([e])[0], paid, atol=1e-6)


def test_a_worker_pays_as_the_learner_would(name):
    own = trained(eager(name))
    episodes = random_episodes(np.random.default_rng(5))
    mine, theirs = worker(own).reward(episodes), own.reward(episodes)
    np.testing.assert_array_equal(np.concatenate(mine), np.concatenate(theirs))
    assert np.concatenate(mine).any()


def test_nothing_is_paid_before_there_is_something_to_say(name):
    episodes = random_episodes(np.random.default_rng(0))
    unpaid = [planted_episode(np.random.default_rng(i), False) for i in range(4)]
    own = model(name, PICTURES)
    for fresh in (model(name), worker(model(name))):  # no snapshot; that of one that saw nothing
        assert [len(paid) for paid in fresh.reward(episodes)] == [len(e) for e in episodes]
        assert not np.concatenate(fresh.reward(episodes)).any()
    before = own.snapshot()
    learn(own, unpaid)  # equal returns
    assert not np.concatenate(worker(own).reward(unpaid)).any()
    # What was played ahead stays valid while nothing that pays has changed.
    assert pay_alike({"models": before}, {"models": own.snapshot()})


def test_no_episodes(name):
    own = model(name)
    before = flat(own.get_state())
    learn(own, [])
    assert flat(own.get_state()) == before
    assert trained(eager(name)).reward([]) == []


@BOTH
def test_restored_it_continues_to_the_digit(name, space):
    own = trained(busy(name, space), space=space)
    saved = pickle.dumps(own.get_state())
    other = trained(busy(name, space, seed=99), batches=1, space=space)
    other.set_state(pickle.loads(saved))
    assert flat(other.get_state()) == flat(own.get_state())
    for each in (own, other):
        trained(each, batches=2, seed=7, space=space)
    assert flat(other.get_state()) == flat(own.get_state())
    assert flat(other.get_state()) != flat(pickle.loads(saved))
    episodes = random_episodes(np.random.default_rng(3), space)
    for mine, theirs in zip(other.reward(episodes), own.reward(episodes), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_state_shares_nothing_with_the_model(name):
    own = trained(busy(name))
    state, snapshot = own.get_state(), own.snapshot()
    before = flat(state), flat(snapshot)
    other = busy(name, seed=5)
    other.set_state(state)
    trained(own, batches=1)
    trained(other, batches=1)
    assert (flat(state), flat(snapshot)) == before


def test_learners_with_the_same_seed_stay_equal_and_leave_the_global_generator_alone(name):
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first, second = trained(busy(name)), trained(busy(name))
    assert torch.equal(torch.rand(1), expected)
    assert flat(first.get_state()) == flat(second.get_state())
    assert flat(trained(busy(name, seed=1)).get_state()) != flat(first.get_state())


def test_actions_may_be_forces(name):
    own = trained(busy(name, actions=FORCES), actions=FORCES)
    episodes = random_episodes(np.random.default_rng(5), actions=FORCES)
    assert np.isfinite(np.concatenate(own.reward(episodes))).all()


def test_vectors_of_any_scale_are_brought_to_one(name):
    def paid(scale):
        own = model(name, **EAGER[name])
        rng = np.random.default_rng(1)
        for _ in range(2):
            batch = random_episodes(rng)
            learn(own, [type(e)(e.observations * scale, e.actions, e.rewards) for e in batch])
        new = random_episodes(np.random.default_rng(5))
        return np.concatenate(
            own.reward([type(e)(e.observations * scale, e.actions, e.rewards) for e in new])
        )

    np.testing.assert_allclose(paid(np.float32(1024.0)), paid(np.float32(1.0)), atol=1e-3)


# --- what others ask of it ---------------------------------------------------------------------


def test_it_is_registered_and_learns_from_every_episode(name):
    own = model(name)
    assert find_model(name) is type(own) and own.name == name
    summaries = [e.summary for e in random_episodes(np.random.default_rng(0))]
    assert [i for i, _ in own.choose(summaries, np.random.default_rng(0))] == [0, 1, 2, 3]
    assert own.hints() == []
    assert options_of(name, {}, "paper") == type(own.options)()


def test_two_that_replace_the_reward_are_refused():
    setting = model("rrd").setting
    with pytest.raises(OptionError, match="rrd: replaces the environment's reward, and so does ru"):
        Together({"rudder": {}, "rnd": {}, "rrd": {}}, setting)
    assert Together({"rudder": {}, "rnd": {}, "synthrs": {}}, setting).num_parameters


def test_check_names_the_encoder_and_builds_nothing(name):
    with pytest.raises(OptionError, match="encoder: 'strided' needs pictures of at least 20×20"):
        model(name, PICTURES, encoder="strided").check()
    vast = model(name, PICTURES, encoder_dim=10**7, dim=10**6)  # terabytes of weights
    vast.check()
    assert vast.num_parameters > 10**12


def test_num_parameters_and_sizes(name):
    own = model(name, PICTURES)
    assert own.num_parameters == sum(p.numel() for p in own.networks.parameters())
    wide = model(name, dim=7)
    with pytest.raises(RuntimeError, match="size mismatch"):
        wide.set_state(trained(eager(name)).get_state())
    assert own.sizes(wide.options) != own.sizes(own.options)
    assert own.sizes(model(name, lr=0.5).options) == own.sizes(own.options)


def test_metrics_are_shown(name):
    own = busy(name)
    metrics = learn(own, random_episodes(np.random.default_rng(0)))
    assert set(own.cells(metrics)) == set(own.metrics_shown)


def test_equal_returns_are_waited_out_and_a_hint_says_so(name):
    own = model(name, PICTURES)
    for i in range(25):
        learn(own, [planted_episode(np.random.default_rng(8 * i + j), False) for j in range(8)])
    (hint,) = own.hints()
    said = {"synthrs": "no reward in 200 episodes"}
    assert said.get(name, "all of 200 episodes had the return 0") in hint
    assert own.describe(own.get_state()).lines == (own.EMPTY,)
    learn(own, planted_batch(np.random.default_rng(0)))
    assert own.hints() == []


def test_it_describes_what_the_best_episodes_were_worth(name):
    own = eager(name, PICTURES)
    rng = np.random.default_rng(0)
    for _ in range(2):
        learn(own, planted_batch(rng))
    state = pickle.loads(pickle.dumps(own.get_state()))
    description = own.describe(state)
    ((gallery, (most, least)),) = description.galleries.items()
    assert gallery == f"{name}_steps"
    assert len(description.lines) == 3
    assert description.lines[1].startswith("worth most: ") and least.title == "worth least"
    assert [m.score for m in most.moments] == sorted((m.score for m in most.moments), reverse=True)
    worth = dict(zip(map(id, own._best), state["contributions"], strict=True))
    assert max(w.max() for w in worth.values()) == most.moments[0].score
    assert min(w.min() for w in worth.values()) == least.moments[0].score
    (timeline,) = description.timelines
    assert (timeline.scores["worth"] == state["contributions"][0]).all()
    # Successes are shown, where there are some.
    assert all(m.episode.success for m in (*most.moments, *least.moments))
    assert all(0 <= light_of(m.episode) < len(m.episode) for m in most.moments)
