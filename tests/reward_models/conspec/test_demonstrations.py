"""S may start from recorded successes."""

import builders
import numpy as np
import pytest
from builders import marked_episodes
from gymnasium import spaces
from learners import QUICK, SHAPE, checksum, new_learner

from rllib_conspec.errors import OptionError
from rllib_conspec.recordings import Origin, Recording, save
from rllib_conspec.reward_models.base import Setting
from rllib_conspec.reward_models.conspec.model import ConSpecModel

SPACES = spaces.Box(-1, 1, SHAPE), spaces.Discrete(3)


@pytest.fixture
def file(tmp_path):
    won, _ = marked_episodes(np.random.default_rng(0), 3, 0)
    origin = Origin.of("Marks", "marks 1.0", *SPACES)
    save(tmp_path / "demos", Recording(origin, "random", 99, tuple(e.packed() for e in won)))
    return str(tmp_path / "demos")


def model(file, plays="Marks", version="marks 1.0", actions=SPACES[1], **values):
    options = builders.options(**QUICK | {"demonstrations": file} | values)
    setting = Setting(SPACES[0], actions, seed=0, plays=plays, version=version)
    return ConSpecModel(options, setting)


@pytest.mark.parametrize("memory", ["newest", "ages"])
def test_it_learns_before_the_agent_has_succeeded(file, memory):
    made = model(file, memory=memory, min_successes=2)
    made.check()
    rng = np.random.default_rng(1)
    for _ in range(4):
        _, lost = marked_episodes(rng, 0, 5)
        metrics = made.update([(False, e) for e in lost])
    assert metrics["successes"] == 3
    # Ages are judged before they are learned from: these are all held back.
    assert ("loss" in metrics) == (memory == "newest")


def test_as_many_as_are_asked_for_the_first_ones(file):
    two, all_ = (model(file, num_demonstrations=n).learner.memory.successes for n in (2, None))
    assert len(two) == 2 and len(all_) == 3
    assert checksum(two) == checksum(list(all_)[:2])


def test_a_restored_run_does_not_start_from_them_again(file):
    made, again = model(file), model(file)
    won, lost = marked_episodes(np.random.default_rng(2), 4, 4)  # push them out
    made.update([*((True, e) for e in won), *((False, e) for e in lost)])
    again.set_state(made.get_state())
    assert checksum(again.learner.memory.successes) == checksum(e.packed() for e in won)


def test_of_ages_they_wait_for_the_first_failures_also_over_a_restore(file):
    made, again = model(file, memory="ages"), model(file, memory="ages")
    made.learner  # noqa: B018 (it is built when it is first used)
    again.set_state(made.get_state())
    _, lost = marked_episodes(np.random.default_rng(2), 0, 4)
    again.learner.add([], lost)
    assert again.learner.memory.count == (3, 4)
    again.learner.add([], lost)
    assert again.learner.memory.count == (3, 4)  # once


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"plays": "Other"}, "is of Marks, not of Other"),
        ({"version": "marks 2.0"}, "was played by marks 1.0, not by marks 2.0"),
        ({"actions": spaces.Discrete(4)}, r"has actions Discrete\(3\), not Discrete\(4\)"),
        ({"memory_size": 2, "memory_batch": 2}, "has 3 episodes, and memory_size is 2"),
    ],
)
def test_what_cannot_be_used_is_said(file, change, said):
    with pytest.raises(OptionError, match=f"^demonstrations: .*{said}"):
        model(file, **change).check()


def test_paths_are_full_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert builders.options(demonstrations="demos").demonstrations == str(tmp_path / "demos")


def test_without_them_nothing_changes():
    assert new_learner().memory.count == (0, 0)
