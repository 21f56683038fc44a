"""TVT against a literal version, and a planted memory over which it splices value."""

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.episodes import Episode
from rllib_conspec.errors import OptionError
from rllib_conspec.reward_models import find_model, options_of
from rllib_conspec.reward_models.base import Setting
from rllib_conspec.reward_models.tvt import READS

SPACE = spaces.Box(-1, 1, (2,), np.float32)


def model(*, gamma=0.75, outputs=READS, **options):
    setting = Setting(SPACE, spaces.Discrete(2), gamma=gamma, outputs=outputs)
    return find_model("tvt")(options_of("tvt", options), setting)


def episode(strengths, weights, addresses, values):
    steps = len(values)
    given = strengths, weights, addresses, values
    return Episode(
        np.zeros((steps + 1, 2), np.float32),
        np.zeros(steps, np.int64),
        np.zeros(steps, np.float32),
        outputs=dict(zip(READS, map(np.asarray, given), strict=True)),
    )


def literal(strengths, weights, addresses, values, *, alpha, threshold, gamma):
    """One head and one step at a time, as the paper's pseudocode goes."""
    steps, heads = strengths.shape
    paid = [0.0] * steps
    for head in range(heads):
        splices, run = [], []
        for t in range(steps):
            if strengths[t, head] > threshold:
                run.append(t)
            if run and (t == steps - 1 or strengths[t, head] <= threshold):
                splices.append(max(run, key=lambda s: strengths[s, head]))
                run = []
        for t2 in splices:
            for t1, w in zip(addresses[t2, head], weights[t2, head], strict=True):
                if t2 - t1 > 1 / (1 - gamma):
                    paid[t1] += alpha * w * values[t2]
    return paid


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    steps=st.integers(1, 20),
    heads=st.integers(1, 3),
    reads=st.integers(1, 6),
    alpha=st.floats(0, 2),
    threshold=st.floats(0, 4),
    gamma=st.sampled_from([0.0, 0.5, 0.75, 0.875]),
)
def test_pay_is_that_of_the_literal_version(seed, steps, heads, reads, alpha, threshold, gamma):
    rng = np.random.default_rng(seed)
    given = (
        rng.gamma(2, 1, (steps, heads)).round(1).astype(np.float32),
        rng.dirichlet(np.ones(reads), (steps, heads)).astype(np.float32),
        rng.integers(0, np.arange(1, steps + 1)[:, None, None], (steps, heads, reads)),
        rng.normal(size=steps).astype(np.float32),
    )
    own = {"alpha": alpha, "threshold": threshold}
    (paid,) = model(gamma=gamma, **own).reward([episode(*given)])
    expected = literal(*given, gamma=gamma, **own)
    np.testing.assert_allclose(paid, expected, rtol=1e-5, atol=1e-6)


def recalled(strength, distance, *, value=2.0):
    """Ten steps; at the last one, one head reads the step `distance` before it."""
    strengths, weights = np.zeros((10, 1)), np.ones((10, 1, 1))
    addresses, values = np.zeros((10, 1, 1), int), np.zeros(10)
    strengths[9], addresses[9], values[9] = strength, 9 - distance, value
    return episode(strengths, weights, addresses, values)


def test_value_is_spliced_over_a_gap():
    tvt = model(gamma=0.75)  # discounting reaches 4 steps
    far, near, quiet = recalled(2.5, 6), recalled(2.5, 4), recalled(1.9, 6)
    paid = tvt.reward([far, near, quiet])
    np.testing.assert_allclose(paid[0], 1.8 * (np.arange(10) == 3))
    assert not paid[1].any() and not paid[2].any()
    metrics = tvt.update([(None, far), (None, quiet)])
    assert metrics == {"splices": 0.5, "paid": pytest.approx(0.9)}
    assert tvt.update([]) == metrics
    assert "0.5 peaks" in tvt.describe(tvt.get_state()).lines[0]
    other = model()
    other.set_state(tvt.get_state())
    assert other.get_state() == metrics
    assert "no episode" in tvt.describe({}).lines[0]


def test_without_rma_it_is_refused_in_one_line():
    model().check()
    with pytest.raises(OptionError, match=r"set model_config\.core to rma") as error:
        model(outputs=()).check()
    assert "\n" not in error.value.message
