"""Windows of recorded episodes: labels against slow ones, every step equally often, padding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.algorithm.decision_transformer.windows import (
    ACTIONS,
    LENGTH,
    RETURNS,
    STEPS,
    Windows,
    recorded_episodes,
    to_go,
)
from rllib_conspec.episodes import Episode
from rllib_conspec.errors import OptionError
from rllib_conspec.recordings import Origin, Recording, save

CARD = Origin("cards", "1", "2 float32", "Discrete(4)")


def episode(number, length, success=None):
    """Step t of episode n is seen as (n, t); actions and rewards are drawn."""
    rng = np.random.default_rng(number)
    seen = np.stack([np.full(length + 1, number), np.arange(length + 1)], axis=1)
    rewards = rng.integers(-2, 3, length).astype(np.float32)
    return Episode(seen.astype(np.float32), rng.integers(4, size=length), rewards, success=success)


@given(st.integers(0, 1000), st.integers(1, 12))
def test_a_label_is_the_sum_of_all_that_follows(number, length):
    played = episode(number, length)
    expected = [sum(float(r) for r in played.rewards[t:]) for t in range(length)]
    assert to_go(played, "return").tolist() == expected
    for success in (True, False):
        assert to_go(played.judged(success), "uniform").tolist() == [float(success)] * length


def test_uniform_labels_need_a_verdict():
    with pytest.raises(OptionError, match="labels: uniform needs to know"):
        to_go(episode(0, 3), "uniform")


@settings(max_examples=20)
@given(
    st.integers(0, 2**31), st.integers(1, 6), st.lists(st.integers(1, 9), min_size=1, max_size=4)
)
def test_windows_are_pieces_of_episodes(seed, context, lengths):
    episodes = [episode(n, length) for n, length in enumerate(lengths)]
    drawn = Windows(episodes, context, "return").draw(16, np.random.default_rng(seed))
    for row in range(16):
        played = episodes[int(drawn["obs"][row, 0, 0])]
        begin, length = int(drawn[STEPS][row, 0]), int(drawn[LENGTH][row])
        assert length == min(context, len(played) - begin) > 0
        for t in range(length):
            at = begin + t
            assert drawn[STEPS][row, t] == at
            assert drawn["obs"][row, t].tolist() == played.observations[at].tolist()
            assert drawn[ACTIONS][row, t] == played.actions[at]
            assert drawn[RETURNS][row, t] == sum(float(r) for r in played.rewards[at:])
        for name in ("obs", STEPS, ACTIONS, RETURNS):
            assert drawn[name].shape[:2] == (16, context)
            assert not drawn[name][row, length:].any()


def test_every_step_begins_a_window_equally_often():
    episodes = [episode(0, 2), episode(1, 6)]
    drawn = Windows(episodes, 3, "return").draw(8000, np.random.default_rng(0))
    first = drawn["obs"][:, 0].astype(int)
    counts = np.bincount(first[:, 0] * 2 + first[:, 1], minlength=8)
    assert len(counts) == 8 and counts.min() > 880 and counts.max() < 1120


@pytest.fixture
def file(tmp_path):
    def write(name="a.rec", origin=CARD, count=2):
        packed = tuple(episode(n, 3).packed() for n in range(count))
        save(tmp_path / name, Recording(origin, "random", 9, packed))
        return str(tmp_path / name)

    return write


def test_episodes_of_several_files(file):
    assert len(recorded_episodes([file("a.rec"), file("b.rec", count=3)], CARD)) == 5


def test_what_cannot_be_learned_from(file, tmp_path):
    other = Origin("dice", "1", "2 float32", "Discrete(4)")
    (tmp_path / "x.txt").write_text("nothing")
    for files, says in (
        ([], "learns from recorded episodes: name a file"),
        ([str(tmp_path / "none.rec")], "there is no file"),
        ([str(tmp_path / "x.txt")], "is not a recording"),
        ([file(), file("o.rec", other)], "o.rec is of dice, not of cards"),
        ([file("e.rec", count=0)], "no episode"),
    ):
        with pytest.raises(OptionError, match=says) as error:
            recorded_episodes(files, CARD)
        assert error.value.option == "recordings"
