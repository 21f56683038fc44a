"""Several reward models as one."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from rllib_conspec.episodes import Episode
from rllib_conspec.errors import OptionError, UserError
from rllib_conspec.options import Options, option
from rllib_conspec.reward_models.base import RewardModel, Setting
from rllib_conspec.reward_models.together import FORMAT, Together, models_in, pay_alike

SETTING = Setting(spaces.Box(-1, 1, (2,), np.float32), spaces.Discrete(2), seed=0)


@dataclass(frozen=True)
class EveryOptions(Options):
    nth: int = option(1, "learn from every nth episode", min=1)
    pay: float = option(0.0, "for every step")


class Every(RewardModel):
    """Learns from every nth episode, with a label that nobody else can read."""

    Options = EveryOptions
    presets = {"generous": {"pay": 100.0}}
    num_parameters = 10

    def __init__(self, options, setting):
        super().__init__(options, setting)
        self.seen, self.factor = [], 0.0

    def check(self):
        if self.options.nth == 13:
            raise OptionError("nth", "brings bad luck.")

    def choose(self, summaries, rng):
        return [(i, _Label(self, i)) for i in range(0, len(summaries), self.options.nth)]

    def update(self, episodes):
        assert all(label.owner is self for label, _ in episodes)
        self.seen += [(label.position, float(e.rewards[0])) for label, e in episodes]
        return {"seen": len(self.seen)}

    def hints(self):
        return ["more episodes, please"] if len(self.seen) < 3 else []

    def snapshot(self):
        return len(self.seen)

    def get_state(self):
        return {"seen": list(self.seen)}

    def set_state(self, state):
        self.seen = list(state["seen"])

    def load(self, snapshot):
        self.factor = float(snapshot)

    def reward(self, episodes):
        return [np.full(len(e), self.options.pay * self.factor) for e in episodes]


class Other(Every):
    pass


class Namesake(Every):
    name = "every"


class _Label:
    """No number, no dictionary, not comparable: passed on as it is."""

    __eq__ = __hash__ = __lt__ = None

    def __init__(self, owner, position):
        self.owner, self.position = owner, position


# Import paths, as a user would write them.
EVERY, OTHER, NAMESAKE = (f"{__name__}:{c.__name__}" for c in (Every, Other, Namesake))


def episodes(count, steps=3):
    return [
        Episode(np.full((steps + 1, 2), i, np.float32), np.zeros(steps), np.full(steps, float(i)))
        for i in range(count)
    ]


def rng():
    return np.random.default_rng(0)


def learn(together, batch):
    chosen = together.choose([e.summary for e in batch], rng())
    return together.update([(labels, batch[i]) for i, labels in chosen])


@given(st.integers(0, 12), st.integers(1, 5), st.integers(1, 5))
def test_union_of_choices_and_to_each_what_it_chose(count, first, second):
    together = Together({EVERY: {"nth": first}, OTHER: {"nth": second}}, SETTING)
    batch = episodes(count)
    chosen = together.choose([e.summary for e in batch], rng())
    assert [i for i, _ in chosen] == [i for i in range(count) if i % first == 0 or i % second == 0]
    metrics = together.update([(labels, batch[i]) for i, labels in chosen])
    wanted = {EVERY: range(0, count, first), OTHER: range(0, count, second)}
    assert {name: m.seen for name, m in together.models.items()} == {
        name: [(i, float(i)) for i in positions] for name, positions in wanted.items()
    }
    assert metrics == {"every": {"seen": len(wanted[EVERY])}, "other": {"seen": len(wanted[OTHER])}}


def test_sum_of_pay():
    together = Together({EVERY: {"pay": 0.5}, OTHER: {"pay": -2.0, "nth": 2}}, SETTING)
    batch = [*episodes(2), *episodes(1, steps=5)]
    assert not np.concatenate(together.reward(batch)).any()  # before any snapshot
    learn(together, episodes(4))
    worker = Together({EVERY: {"pay": 0.5}, OTHER: {"pay": -2.0, "nth": 2}}, SETTING)
    worker.load(pickle.loads(pickle.dumps(together.snapshot())))
    paid = worker.reward(batch)
    assert [len(p) for p in paid] == [3, 3, 5]
    assert all(p.dtype == np.float32 for p in paid)
    np.testing.assert_array_equal(np.concatenate(paid), 0.5 * 4 - 2.0 * 2)
    assert worker.version == 1


def test_registered_models_side_by_side():
    models = {"rnd": {"dim": 4, "coeff": 2.0}, EVERY: {"pay": 1.0}}
    together, alone = Together(models, SETTING), Together({"rnd": models["rnd"]}, SETTING)
    batch = episodes(4)
    for one in (together, alone):
        learn(one, batch)
        one.load(one.snapshot())
    both, novelty = together.reward(batch), alone.reward(batch)
    np.testing.assert_allclose(np.concatenate(both), np.concatenate(novelty) + 4, rtol=1e-6)
    assert together.num_parameters == alone.num_parameters + 10
    assert together.hints() == [] and list(together.models) == ["rnd", EVERY]


def test_hints_say_who_speaks():
    assert Together({EVERY: {}}, SETTING).hints() == ["every: more episodes, please"]


def test_none_at_all():
    together = Together({}, SETTING)
    assert together.choose([e.summary for e in episodes(3)], rng()) == []
    assert not np.concatenate(together.reward(episodes(3))).any()


# --- states ------------------------------------------------------------------------------------


def test_state_round_trip():
    together = Together({EVERY: {}, OTHER: {"nth": 2}}, SETTING)
    learn(together, episodes(3))
    learn(together, episodes(2))
    state = pickle.loads(pickle.dumps(together.get_state()))
    assert models_in(state).keys() == {EVERY, OTHER}
    restored = Together({EVERY: {}, OTHER: {"nth": 2}}, SETTING)
    restored.set_state(state)
    assert restored.version == together.version == 2
    assert restored.get_state() == together.get_state()
    learn(restored, episodes(1))
    assert restored.get_state() != together.get_state()


def test_a_model_more_or_less_than_the_state_has():
    together = Together({EVERY: {}}, SETTING)
    learn(together, episodes(3))
    more = Together({EVERY: {}, OTHER: {}}, SETTING)
    more.set_state(together.get_state())
    assert len(more.models[EVERY].seen) == 3 and more.models[OTHER].seen == []
    less = Together({OTHER: {}}, SETTING)
    less.set_state(more.get_state())
    assert less.models[OTHER].seen == [] and less.version == 1


@pytest.mark.parametrize(
    "state", [None, {}, {"model": {}, "optimizer": {}, "version": 3}, {"format": FORMAT - 1}]
)
def test_a_state_of_an_earlier_version_is_refused(state):
    for read in (models_in, Together({EVERY: {}}, SETTING).set_state):
        with pytest.raises(UserError, match="earlier version"):
            read(state)


# --- mistakes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "line"),
    [
        (
            {"conspek": {}},
            "conspek: unknown reward model; there are conspec, rnd, rrd, rudder, synthrs, tvt, and "
            'import paths package.module:Class. Did you mean "conspec"?',
        ),
        (
            {"no_such_module:Model": {}},
            "no_such_module:Model: cannot import this reward model: "
            "No module named 'no_such_module'.",
        ),
        (
            {f"{__name__}:SETTING": {}},
            f"{__name__}:SETTING: is no reward model: derive it from RewardModel.",
        ),
        (
            {f"{__name__}:EveryOptions": {}},
            f"{__name__}:EveryOptions: is no reward model: derive it from RewardModel.",
        ),
        ({"conspec": {"share": 0.5}}, "conspec.share: is an option of rnd, not of conspec."),
        (
            {"rnd": {"num_prototypes": 3}},
            "rnd.num_prototypes: is an option of conspec, not of rnd.",
        ),
        ({"rnd": {"coef": 1.0}}, 'rnd.coef: unknown option. Did you mean "coeff"?'),
        ({"rnd": {}, EVERY: {"nth": 0}}, f"{EVERY}.nth: must be at least 1, not 0."),
        (
            {EVERY: {}, NAMESAKE: {}},
            f"{EVERY}: has the same name as another model: 'every'.",
        ),
        (
            {"rnd": {}, "rllib_conspec.reward_models.rnd:RND": {}},
            "rnd: has the same name as another model: 'rnd'.",
        ),
    ],
)
def test_mistakes_are_answered_by_one_line(models, line):
    with pytest.raises(OptionError) as caught:
        Together(models, SETTING)
    assert str(caught.value) == line


def test_checks_say_which_model_they_are_about():
    with pytest.raises(OptionError) as caught:
        Together({"rnd": {}, EVERY: {"nth": 13}}, SETTING).check()
    assert str(caught.value) == f"{EVERY}.nth: brings bad luck."
    with pytest.raises(OptionError, match=r"^rnd\.encoder: 'conv' needs pictures"):
        Together({"rnd": {"encoder": "conv"}}, SETTING).check()


def test_a_preset_is_for_all_models():
    together = Together({EVERY: {"nth": 2}, "rnd": {}}, SETTING, "generous")
    assert together.models[EVERY].options == EveryOptions(nth=2, pay=100.0)


def test_snapshots_pay_alike_whatever_their_versions():
    def snapshot(version, *pays):
        return {"version": version, "models": {"a": (np.array(pays), {"w": np.ones(2)})}}

    assert pay_alike(snapshot(1, True, False), snapshot(2, True, False))
    assert not pay_alike(snapshot(1, True, False), snapshot(1, True, True))
    assert pay_alike(None, None)
    assert not pay_alike(None, snapshot(0))
