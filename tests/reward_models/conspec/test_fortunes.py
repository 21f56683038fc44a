"""How often the agent has succeeded lately, against plain sums and draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_conspec.reward_models.conspec.fortunes import LATELY, NOTHING, Fortunes, Share

batches = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=2 * LATELY)


@given(batches)
def test_lately_is_the_newest_batches_together(played):
    fortunes = Fortunes()
    for won, lost in played:
        fortunes.add(won, won + lost)
    newest = played[-LATELY:]
    expected = sum(won for won, _ in newest), sum(won + lost for won, lost in newest)
    assert fortunes.lately == expected
    assert Fortunes(tuple(b) for b in fortunes.batches).lately == expected


@pytest.mark.parametrize(
    ("now", "before", "fewer"),
    [
        ((0, 320), (30, 320), True),
        ((13, 320), (29, 320), True),
        ((13, 320), (20, 320), False),  # by chance
        ((0, 320), (1, 320), False),
        ((29, 320), (13, 320), False),  # more
        ((0, 4), (2, 4), False),  # too few to say
        ((0, 320), NOTHING, False),
    ],
)
def test_fewer_than_before_by_more_than_chance(now, before, fewer):
    assert Share(*now).below(Share(*before)) == fewer


@pytest.mark.parametrize("chance", [0.02, 0.3])
def test_the_same_chance_rarely_looks_like_less(chance):
    rng = np.random.default_rng(0)
    drawn = rng.binomial(320, chance, (2000, 2))
    wrong = np.mean([Share(a, 320).below(Share(b, 320)) for a, b in drawn])
    assert wrong < 0.04  # two standard errors, on one side: 0.023
