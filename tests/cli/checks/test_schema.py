import pytest

from rllib_conspec.cli.checks.schema import Key, check_section, one_line
from rllib_conspec.errors import OptionError


def test_bounds_and_choices_are_checked():
    schema = {
        "n": Key((int,), min=1),
        "seconds": Key((float,), min=1),
        "mode": Key((str,), choices=("max", "min")),
    }
    check_section({"n": 2, "mode": "max"}, schema)
    for section, option in [
        ({"n": 0}, "n"),
        ({"n": {"grid_search": [1, 2]}}, "n"),
        ({"seconds": float("nan")}, "seconds"),
        ({"seconds": float("inf")}, "seconds"),
        ({"mode": "maks"}, "mode"),
        ({"m": 1}, "m"),
    ]:
        with pytest.raises(OptionError) as raised:
            check_section(section, schema)
        assert raised.value.option == option


def test_many_lines_of_an_exception_become_one():
    text = "a is\n  wrong\n\n To suppress all validation errors, do something else."
    assert one_line(ValueError(text)) == "a is wrong"
    assert one_line(KeyError()) == "KeyError"
    assert len(one_line(ValueError("x" * 500))) == 300
