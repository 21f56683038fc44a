"""Exploring is worth less to PPO, the more often the agent succeeds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import plain_config

from rllib_conspec.algorithm.entropy import Fading, missing


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_more_success_the_less_exploring_is_worth(some, more):
    some, more = sorted((some, more))
    assert 0.1 <= missing(more) <= missing(some) <= 1.0
    assert missing(some) == pytest.approx(max(0.1, 1.0 - some))


def test_a_schedule_of_coefficients_fades_too():
    entropy = Fading([[0, 0.4], [100, 0.2]], device="cpu")
    entropy.factor = 0.5
    assert entropy.update(timestep=50) == pytest.approx(0.15)
    assert float(entropy.get_current_value()) == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("fades", "success", "left"), [(True, 0.25, 0.75), (True, 1.0, 0.1), (False, 1.0, 1.0)]
)
def test_ppo_explores_in_the_measure_that_success_is_missing(built, fades, success, left):
    algo = built(plain_config().training(entropy_coeff=0.04, entropy_fades=fades))
    algo._iteration_metrics.set_state({"recent_success": [success] * 19})
    learned = algo.train()["learners"]["default_policy"]
    assert learned["curr_entropy_coeff"] == pytest.approx(0.04 * left)
    assert learned["total_loss"] == pytest.approx(
        learned["policy_loss"]
        + 0.5 * learned["vf_loss"]
        - learned["curr_entropy_coeff"] * learned["entropy"],
        abs=1e-6,
    )


def test_where_success_is_not_measured_nothing_fades(built):
    algo = built(plain_config(success="top_k").training(entropy_coeff=0.04, entropy_fades=True))
    for _ in range(2):
        learned = algo.train()["learners"]["default_policy"]
    assert learned["curr_entropy_coeff"] == pytest.approx(0.04)
