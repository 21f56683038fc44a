import pytest

from rllib_conspec.cli.checks import strict_yaml
from rllib_conspec.errors import UserError


def test_numbers_without_a_dot_are_numbers():
    values = strict_yaml.load("{a: 1e-4, b: 2E6, c: -3e+2, d: 10, e: 1.5, f: e5, g: v1e}", "x")
    assert values == {"a": 1e-4, "b": 2e6, "c": -300.0, "d": 10, "e": 1.5, "f": "e5", "g": "v1e"}


def test_a_key_given_twice_is_refused_with_its_line():
    with pytest.raises(UserError, match=r'x\.yaml: line 3, column 3: the key "lr" is given twice'):
        strict_yaml.load("config:\n  lr: 1\n  lr: 2\n", "x.yaml")


def test_syntax_errors_name_line_and_column():
    with pytest.raises(UserError, match=r"x\.yaml: line 2, column 4: "):
        strict_yaml.load("a: [1,\nb: }", "x.yaml")


def test_python_objects_are_not_built(tmp_path):
    target = tmp_path / "made"
    with pytest.raises(UserError):
        strict_yaml.load(f'!!python/object/apply:os.mkdir ["{target}"]', "x.yaml")
    assert not target.exists()


def test_anchors_and_merge_keys_work():
    text = "base: &b {lr: 1, gamma: 2}\nother: {<<: *b, lr: 3}"
    assert strict_yaml.load(text, "x")["other"] == {"lr": 3, "gamma": 2}
