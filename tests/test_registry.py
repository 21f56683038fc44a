"""Parts by name or import path, and what is said where there is no such part."""

import pytest

from rllib_conspec import auxiliary, reward_models
from rllib_conspec.errors import OptionError
from rllib_conspec.networks import cores
from rllib_conspec.options import Options
from rllib_conspec.registry import Registry

FRUITS = """\
from dataclasses import dataclass
from rllib_conspec.options import Options, option
from fruit_base import Fruit


@dataclass(frozen=True)
class AppleOptions(Options):
    size: int = option(3, "how large", min=1)
    sweetness: float = option(0.5, "how sweet", min=0.0)


class Apple(Fruit):
    Options = AppleOptions
    presets = {"small": {"size": 1, "sweetness": 0.1}}


@dataclass(frozen=True)
class PearOptions(Options):
    size: int = option(4, "how large", min=1)
    softness: float = option(0.5, "how soft", min=0.0)


class Pear(Fruit):
    Options = PearOptions


class Stone:
    pass


apple = Apple()
"""
BASE = """\
class Fruit:
    presets = {}
"""


@pytest.fixture
def fruits(tmp_path, monkeypatch):
    (tmp_path / "fruit_base.py").write_text(BASE)
    (tmp_path / "fruit_kinds.py").write_text(FRUITS)
    (tmp_path / "fruit_rotten.py").write_text("raise RuntimeError('a worm')\n")
    monkeypatch.syspath_prepend(tmp_path)
    from fruit_base import Fruit

    entries = {"apple": "fruit_kinds:Apple", "pear": "fruit_kinds:Pear"}
    return Registry("fruit", Fruit, entries)


def test_by_name_and_by_import_path(fruits):
    assert fruits.find("apple").__name__ == "Apple"
    assert fruits.find("fruit_kinds:Apple") is fruits.find("apple")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "aple",
            "aple: unknown fruit; there are apple, pear, and import paths package.module:Class. "
            'Did you mean "apple"?',
        ),
        (
            "zzz",
            "zzz: unknown fruit; there are apple, pear, and import paths package.module:Class.",
        ),
        (
            "no_such:Apple",
            "no_such:Apple: cannot import this fruit: No module named 'no_such'.",
        ),
        ("fruit_kinds:Stone", "fruit_kinds:Stone: is no fruit: derive it from Fruit."),
        ("fruit_kinds:apple", "fruit_kinds:apple: is no fruit: derive it from Fruit."),
        ("fruit_rotten:Apple", "fruit_rotten:Apple: cannot import this fruit: a worm."),
    ],
)
def test_there_is_no_such_part(fruits, name, line):
    with pytest.raises(OptionError) as caught:
        fruits.find(name)
    assert str(caught.value) == line


def test_a_name_that_the_module_does_not_have(fruits):
    with pytest.raises(OptionError, match=r"^fruit_kinds:Plum: cannot import this fruit: .*'Plum'"):
        fruits.find("fruit_kinds:Plum")


def test_options_are_laid_over_the_preset_and_this_over_the_defaults(fruits):
    def sizes(*args):
        found = fruits.options_of("apple", *args)
        return found.size, found.sweetness

    assert sizes({}) == sizes({}, "unheard of") == (3, 0.5)
    assert sizes({}, "small") == (1, 0.1)
    assert sizes({"size": 7}, "small") == (7, 0.1)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"size": 0}, "apple.size: must be at least 1, not 0."),
        ({"sizes": 1}, 'apple.sizes: unknown option. Did you mean "size"?'),
        ({"softness": 1.0}, "apple.softness: is an option of pear, not of apple."),
        (None, "apple: must be a mapping of options, not None."),
        ([1], "apple: must be a mapping of options, not [1]."),
    ],
)
def test_mistakes_in_options(fruits, values, line):
    with pytest.raises(OptionError) as caught:
        fruits.options_of("apple", values)
    assert str(caught.value) == line


@pytest.mark.parametrize(
    "registry",
    [reward_models.REGISTRY, auxiliary.REGISTRY, cores.REGISTRY],
    ids=["reward models", "auxiliary losses", "cores"],
)
def test_all_that_is_registered_is_there(registry):
    for name in registry.entries:
        assert issubclass(registry.find(name), registry.base)
        assert isinstance(registry.options_of(name, {}), Options)
        for preset in registry.find(name).presets:
            registry.options_of(name, {}, preset)
