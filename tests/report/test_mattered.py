import numpy as np
import pytest
from trials_on_disk import write_trial

from rllib_conspec.report.groups import group_trials
from rllib_conspec.report.mattered import sweeps
from rllib_conspec.report.reading import read_trials


def groups_of(directory, *params):
    """A group for each of these."""
    for i, own in enumerate(params):
        write_trial(directory / "sweep" / f"trial_{i}", [0.5], own)
    return group_trials(read_trials(sorted((directory / "sweep").iterdir())))


def drawn(count, seed=0):
    rng = np.random.default_rng(seed)
    return [
        {
            "lr": float(10 ** rng.uniform(-5, -2)),
            "conspec": {"coeff": float(rng.uniform())},
            "core": str(rng.choice(["gru", "rma"])),
            "env": "alike",
            "seed": 0,
        }
        for _ in range(count)
    ]


def judged(groups, by):
    return {g.label: by(g.trials[0].params) for g in groups}


@pytest.mark.parametrize(
    ("best", "by"),
    [
        ("lr", lambda p: -abs(np.log10(p["lr"]) + 3.5)),
        ("conspec.coeff", lambda p: p["conspec"]["coeff"] ** 2),
        ("core", lambda p: float(p["core"] == "rma")),
    ],
)
def test_what_alone_decides_is_most_important(tmp_path, best, by):
    groups = groups_of(tmp_path, *drawn(40))
    (found,) = sweeps(groups, judged(groups, by), "success")
    assert next(iter(found.importance)) == best and found.importance[best] > 0.6
    assert set(found.importance) == {"lr", "conspec.coeff", "core"}
    assert sum(found.importance.values()) == pytest.approx(1)
    reached = [found.reached.values[i] for i in found.order]
    assert reached == sorted(reached, reverse=True)


def test_places_on_an_axis(tmp_path):
    rates = (1e-4, 1e-2, 1e-3, 1e-4)
    params = [{"lr": lr, "n": n, "on": n > 2} for n, lr in enumerate(rates)]
    groups = groups_of(tmp_path, *params)
    (found,) = sweeps(groups, {g.label: 1.0 for g in groups}, "success")
    lr, n, on = found.axes
    assert lr.log and not n.log
    np.testing.assert_allclose(lr.places, [0, 1, 0.5, 0])
    np.testing.assert_allclose(n.places, [0, 1 / 3, 2 / 3, 1])
    assert on.choices == ["false", "true"] and list(on.places) == [0, 0, 0, 1]
    assert lr.ends == ("0.0001", "0.01") and [lr.text(2), n.text(2), on.text(2)] == [
        "0.001",
        "2",
        "false",
    ]
    assert list(found.reached.places) == [0.5] * 4  # all alike: nothing mattered more
    assert set(found.importance.values()) == {1 / 3}


def test_few_groups_and_those_that_got_nowhere_say_nothing(tmp_path):
    groups = groups_of(tmp_path, *drawn(5))
    reached = judged(groups, lambda p: p["lr"])
    assert len(sweeps(groups, reached, "success")) == 1
    del reached[groups[0].label]
    reached[groups[1].label] = float("nan")
    assert sweeps(groups, reached, "success") == []
