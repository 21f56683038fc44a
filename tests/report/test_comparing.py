import numpy as np
import pytest
from rliable.metrics import probability_of_improvement

from rllib_conspec.report import comparing as K
from rllib_conspec.report.curves import Curve

STEPS = np.linspace(0, 100, 11)


def ramps(heights):
    return [Curve(STEPS, h * STEPS / 100) for h in heights]


def test_the_middle_half_and_its_interval():
    curves = ramps([0, 0.4, 0.6, 100])  # one run of four is out of all proportion
    steps, low, middle, high = K.iqm(curves, points=5)
    assert steps.tolist() == [0, 25, 50, 75, 100]
    assert middle[-1] == pytest.approx(0.5) and middle[2] == pytest.approx(0.25)
    assert (low <= middle).all() and (middle <= high).all() and low[-1] < 0.4


def test_one_run_has_no_interval():
    _, low, middle, high = K.iqm(ramps([0.7]), points=3)
    assert low.tolist() == middle.tolist() == high.tolist() == [0, 0.35, 0.7]


def test_probability_is_rliables():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.integers(0, 4, (5, 1)), rng.integers(0, 4, (3, 1))
        assert K.probability(x, y) == pytest.approx(probability_of_improvement(x, y))


def test_who_is_better():
    found = K.improvements({"good": ramps([0.9, 1.0]), "bad": ramps([0.1, 0.2]), "one": ramps([1])})
    assert found["good", "bad"] == K.Improvement(1, 1, 1)
    assert found["bad", "good"].probability == 0
    assert not any("one" in pair for pair in found)
    assert K.improvements({"good": ramps([0.9, 1.0])}) == {}


def test_when_half_of_the_runs_were_there():
    assert K.reached(ramps([1, 1, 0]), 0.85) == K.Reached(90, 2, 3)
    assert K.reached(ramps([1, 0, 0]), 0.85) == K.Reached(np.inf, 1, 3)
