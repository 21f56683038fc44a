"""Options: checked when they are built, with one line for every mistake."""

from dataclasses import FrozenInstanceError, dataclass, fields

import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.options import Options, option


@dataclass(frozen=True)
class Some(Options):
    count: int = option(3, "how many", min=1, max=9)
    rate: float = option(0.5, "how fast", above=0.0)
    on: bool = option(True, "whether")
    kind: str = option("red", "which", choices=("red", "green"))
    limit: int | None = option(None, "how far", min=2)


def test_defaults_and_values():
    assert Some.from_dict({}) == Some()
    some = Some.from_dict({"count": 4, "limit": 2, "rate": 1})
    assert (some.count, some.limit, some.rate) == (4, 2, 1)
    assert Some.from_dict(some.to_dict()) == some
    assert Some(limit=None).limit is None
    with pytest.raises(FrozenInstanceError):
        some.count = 5


def test_help_stands_with_the_option():
    assert {f.name: f.metadata["help"] for f in fields(Some)}["rate"] == "how fast"


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"count": 0}, "count: must be at least 1, not 0."),
        ({"count": 10}, "count: must be at most 9, not 10."),
        ({"count": 1.0}, "count: must be a whole number, not 1.0."),
        ({"count": True}, "count: must be a whole number, not True."),
        ({"count": None}, "count: must be a whole number, not None."),
        ({"rate": 0.0}, "rate: must be more than 0.0, not 0.0."),
        ({"rate": "fast"}, "rate: must be a number, not 'fast'."),
        ({"rate": float("nan")}, "rate: must be a finite number, not nan."),
        ({"rate": float("inf")}, "rate: must be a finite number, not inf."),
        ({"rate": False}, "rate: must be a number, not False."),
        ({"on": 1}, "on: must be true or false, not 1."),
        (
            {"kind": "gren"},
            "kind: must be one of red, green, not 'gren'. Did you mean \"green\"?",
        ),
        ({"kind": "blue"}, "kind: must be one of red, green, not 'blue'."),
        ({"kind": 3}, "kind: must be a word, not 3."),
        ({"limit": 1}, "limit: must be at least 2, not 1."),
        ({"limit": "far"}, "limit: must be a whole number or null, not 'far'."),
        ({"cuont": 3}, 'cuont: unknown option. Did you mean "count"?'),
        ({"zzz": 3}, "zzz: unknown option."),
        ({3: 3}, "3: unknown option."),
    ],
)
def test_mistakes(values, line):
    with pytest.raises(OptionError) as caught:
        Some.from_dict(values)
    assert str(caught.value) == line


def test_plain_dataclass_fields_are_checked_by_their_type():
    @dataclass(frozen=True)
    class Plain(Options):
        width: int = 3

    assert Plain.from_dict({"width": 4}).width == 4
    with pytest.raises(OptionError, match="width: must be a whole number"):
        Plain.from_dict({"width": "wide"})
