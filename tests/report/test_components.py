import numpy as np
from told import episode, row

from rllib_conspec.report.components import components, in_words


def moments(rng, marked=2, value=1.0, count=5):
    """Noise, in which component 2 is `value` at the moments and 0 elsewhere; component 3 is 7."""
    episodes, steps = [], []
    for _ in range(count):
        frames = rng.normal(size=(20, 4))
        frames[:, marked], frames[:, 3] = 0, 7
        steps.append(int(rng.integers(20)))
        frames[steps[-1], marked] = value
        episodes.append(episode(frames))
    return row(episodes, steps).moments


def test_the_component_that_differs_comes_first_and_constants_last():
    found = components(moments(np.random.default_rng(0)))
    assert found[0].index == 2 and found[0].deviation > 4
    assert found[0].value == 1 and abs(found[0].usual - 0.05) < 1e-9
    assert found[-1].index == 3 and found[-1].deviation == 0 and found[-1].value == 7


def test_in_words_with_and_without_names():
    shown = moments(np.random.default_rng(0))
    assert in_words(shown, ("x", "y", "switch 1", "c")).startswith(
        "switch 1 is 1 (on average 0.05)"
    )
    assert in_words(shown).startswith("component 2 is 1 (on average 0.05)")


def test_low_values_are_unusual_too():
    assert in_words(moments(np.random.default_rng(0), value=-2.0)).startswith("component 2 is -2 ")


def test_where_nothing_is_unusual_nothing_is_said():
    flat = episode(np.tile([0.0, 1.0], (10, 5, 1)).reshape(-1, 2)[:20])
    assert in_words(row([flat] * 3, [1, 5, 9]).moments) == ""
