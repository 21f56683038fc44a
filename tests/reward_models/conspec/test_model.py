"""ConSpec on the seam: which episodes it learns from, and that its sides are one model."""

from dataclasses import replace

import builders
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from learners import GAMMA, QUICK, SHAPE, same_weights, until, weights

from rllib_conspec.episodes import Summary
from rllib_conspec.errors import OptionError
from rllib_conspec.reward_models.base import Setting
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner
from rllib_conspec.reward_models.conspec.model import SIZES, ConSpecModel
from rllib_conspec.reward_models.conspec.options import ConSpecOptions

VECTORS = spaces.Box(-1, 1, SHAPE)
PICTURES = spaces.Box(0, 255, (3, 3, 3), np.uint8)


def new_model(space: spaces.Box = VECTORS, seed: int | None = 0, **values) -> ConSpecModel:
    setting = Setting(space, spaces.Discrete(3), gamma=GAMMA, observation_range=1.0, seed=seed)
    return ConSpecModel(builders.options(**values), setting)


def summaries(flags, returns=None) -> list[Summary]:
    returns = [float(bool(f)) for f in flags] if returns is None else returns
    return [Summary(r, 10, f) for f, r in zip(flags, returns, strict=True)]


def choose(batch, seed=0, **values) -> list[tuple[int, bool]]:
    return new_model(**values).choose(batch, np.random.default_rng(seed))


# --- choosing ---------------------------------------------------------------------------------


@given(
    st.lists(st.booleans(), max_size=30),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([1, 4, 8]),
    st.integers(0, 99),
)
@settings(builders.examples)
def test_choice_keeps_within_both_limits(flags, most, kept, seed):
    limits = {"max_new_successes": most, "memory_size": kept, "memory_batch": 1}
    chosen = choose(summaries(flags), seed, **limits)
    positions = [i for i, _ in chosen]
    assert positions == sorted(set(positions))
    assert all(flags[i] == success for i, success in chosen)
    assert sum(s for _, s in chosen) == min(most, sum(flags))
    assert sum(not s for _, s in chosen) == min(kept, len(flags) - sum(flags))
    assert all(type(i) is int and type(s) is bool for i, s in chosen)


@pytest.mark.parametrize("flag", [True, False])
def test_which_of_too_many_are_chosen_is_random(flag):
    model = new_model(max_new_successes=2, memory_size=2, memory_batch=2)
    rng = np.random.default_rng(0)
    picked = [i for _ in range(600) for i, _ in model.choose(summaries([flag] * 6), rng)]
    assert np.all(np.abs(np.bincount(picked, minlength=6) - 200) < 60)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=16), st.integers(1, 6))
@settings(builders.examples)
def test_where_success_is_relative_the_best_of_the_batch_succeed(returns, most):
    chosen = choose(summaries([None] * len(returns), returns), max_new_successes=most)
    assert [i for i, _ in chosen] == list(range(len(returns)))
    won = [returns[i] for i, success in chosen if success]
    lost = [returns[i] for i, success in chosen if not success]
    assert len(won) == min(most, len(returns))
    assert not lost or min(won) >= max(lost)


def test_other_kinds_of_success_do_not_look_at_the_return():
    assert choose(summaries([False, True], [9.0, -9.0])) == [(0, False), (1, True)]


def test_an_empty_batch_gives_nothing():
    assert choose([]) == []


# --- both sides -------------------------------------------------------------------------------


def test_labels_say_which_memory_an_episode_goes_to():
    model = new_model(**QUICK)
    won, lost = builders.marked_episodes(np.random.default_rng(0), 2, 3)
    labelled = [(False, e) for e in lost] + [(True, e) for e in won]
    metrics = model.update(labelled)
    assert (metrics["successes"], metrics["failures"]) == (2, 3)
    assert builders.contents(model.learner.memory.successes) == builders.contents(won)
    assert builders.contents(model.learner.memory.failures) == builders.contents(lost)


def test_what_the_learner_learned_the_worker_pays():
    on_learner, on_worker = new_model(**QUICK), new_model(seed=9, **QUICK)
    rng = np.random.default_rng(0)
    until(on_learner.learner.met.any, on_learner.learner, rng)
    probe, _ = builders.marked_episodes(rng, 4, 0)
    assert all((r == 0).all() for r in on_worker.reward(probe))
    on_worker.load(on_learner.snapshot())
    assert sum(r.sum() for r in on_worker.reward(probe)) > 0
    assert "learner" not in vars(on_worker)  # a worker never builds memories or an optimizer


def test_the_setting_reaches_both_sides():
    setting = Setting(
        spaces.Box(0, 8, (3, 5, 6), np.float32),
        spaces.Discrete(2),
        gamma=0.7,
        observation_range=8.0,
        channels="first",
        seed=3,
    )
    options = builders.options(encoder="conv")
    model = ConSpecModel(options, setting)
    view = {"observation_range": 8.0, "channels": "first"}
    expected = ConSpecLearner(options, (3, 5, 6), seed=3, **view)
    assert same_weights(weights(model.learner), weights(expected))
    assert float(model.learner.model.encoder.observation_range) == 8.0
    assert model.learner.model.encoder.linear.in_features == 32 * 5 * 6
    assert model.scorer.gamma == 0.7
    assert model.num_parameters == expected.num_parameters


def test_a_restored_model_is_the_same():
    first, second = new_model(**QUICK), new_model(seed=5, **QUICK)
    rng = np.random.default_rng(0)
    until(first.learner.met.any, first.learner, rng)
    second.set_state(first.get_state())
    assert same_weights(weights(first.learner), weights(second.learner))
    new = builders.marked_episodes(rng, 1, 1)
    labelled = [
        (success, e) for success, some in zip((True, False), new, strict=True) for e in some
    ]
    assert first.update(labelled) == second.update(labelled)


# --- before and after a run -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "encoder"),
    [(VECTORS, "conv"), (VECTORS, "impala"), (VECTORS, "strided"), (PICTURES, "strided")],
)
def test_an_encoder_that_does_not_fit_is_refused_by_name(space, encoder):
    with pytest.raises(OptionError) as error:
        new_model(space, encoder=encoder).check()
    assert error.value.option == "encoder"
    assert not error.value.message.startswith("encoder")
    assert "use encoder" in error.value.message


def test_checking_costs_no_networks():
    model = new_model(encoder_dim=512, projection_dim=200_000)  # 1 TB, were it built
    model.check()
    assert model.num_parameters > 8 * 200_000**2
    assert "learner" not in vars(model)


def test_sizes_are_the_options_that_the_weights_depend_on():
    """Whatever changes the shapes of the weights is among them, and nothing else."""

    small = {"encoder_dim": 4, "projection_dim": 3, "num_prototypes": 2}
    others = {"encoder_dim": 5, "projection_dim": 4, "num_prototypes": 3}
    others |= {"form": "paper", "encoder": "mlp"}

    def shapes(**values):
        model = ConSpecModel(ConSpecOptions(**small | values), new_model(PICTURES).setting)
        return {name: p.shape for name, p in weights(model.learner).items()}

    assert set(others) == set(SIZES)
    for name, value in others.items():
        assert shapes(**{name: value}) != shapes(), name
    assert shapes(memory_size=32, diversity="entropy", window=1) == shapes()
    assert ConSpecModel.sizes(builders.options())["encoder_dim"] == 8


def test_cells_of_the_progress_line():
    metrics = new_model(**QUICK).update([])
    assert ConSpecModel.cells(metrics) == {"in memory": "0", "frozen": "0/3"}
    assert ConSpecModel.cells({}) == {}  # an iteration without an update


def test_where_success_is_relative_some_of_a_batch_have_to_fail():
    setting = Setting(VECTORS, spaces.Discrete(3), best_of=16)
    for few in (2, 15):
        ConSpecModel(ConSpecOptions(max_new_successes=few), setting).check()
    options = ConSpecOptions(max_new_successes=16)
    with pytest.raises(OptionError, match=r"^max_new_successes: is 16: .* Set it to 4\.$"):
        ConSpecModel(options, setting).check()
    ConSpecModel(options, replace(setting, best_of=None)).check()  # each succeeds by itself
