import sys
from types import SimpleNamespace

from rllib_conspec.report.live.models import Models
from rllib_conspec.reward_models.base import RewardModel


class Curious(RewardModel):
    name = "wonder"
    metrics_shown = ("surprise",)


class Broken(RewardModel):
    @classmethod
    def cells(cls, metrics):
        raise KeyError("surprise")


def row(*names, **metrics):
    return {"config": {"reward_models": dict.fromkeys(names)}, **metrics}


def test_models_say_what_they_show(monkeypatch):
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Curious=Curious, Broken=Broken))
    models, result = Models(), row("mine:Curious", wonder={"surprise": 0.25}, other={"a": 1})
    assert models.unknown(result) and models.cells(result) == {}
    models.find(result)
    assert not models.unknown(result) and not models.trouble
    assert models.cells(result) == {"surprise": "0.25"}
    assert models.sections(result) == ["wonder"]


def test_trouble_is_a_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Curious=Curious, Broken=Broken))
    models, result = Models(), row("mine:Broken", "nowhere:Model", broken={"surprise": 1})
    models.find(result)
    assert "nowhere:Model: cannot import" in models.trouble
    assert models.cells(result) == {} and models.trouble == "broken: KeyError: 'surprise'"


def test_a_run_without_reward_models():
    models = Models()
    for result in ({}, {"config": None}, row()):
        assert not models.unknown(result) and models.cells(result) == {}
