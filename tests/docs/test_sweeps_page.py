"""docs/sweeps.md: files are valid, tables complete, mistakes answered as it says."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from rllib_conspec.cli.checks.experiment import load_experiments
from rllib_conspec.cli.checks.space import WORDS
from rllib_conspec.cli.checks.sweep import SCHEDULERS, SEARCHES, search_of
from rllib_conspec.cli.checks.validate import validate
from rllib_conspec.errors import UserError

PAGE = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()
(FILE,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
(PYTHON,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("name", "text"), [("sweep.yaml", FILE), ("sweep.py", PYTHON)])
def test_the_files_of_the_page_are_valid(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    (experiment,) = load_experiments(str(tmp_path / name), {})
    low, high, *_ = validate(experiment)
    assert (low.lr, high.lr) == (1e-4, 5e-3)
    coefficients = [c.reward_models["conspec"]["intrinsic_coeff"] for c in (low, high)]
    assert coefficients == [0.0, 1.0]
    if name == "sweep.yaml":
        assert search_of(experiment).seed == 0


def test_the_tables_have_all_words_and_defaults():
    for word in (*WORDS, *SCHEDULERS, *SEARCHES):
        assert f"`{word}`" in PAGE or f"`{{{word}: " in PAGE, word
    for name, options in {**SCHEDULERS, **SEARCHES}.items():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", PAGE, re.MULTILINE)
        for field in fields(options):
            if field.name == "time_attr":  # named below
                continue
            if field.default is None:
                assert f"`{field.name}`" in row
            else:
                assert re.search(rf"`{field.name}` \(?{field.default:g}\b", row), field.name


MISTAKES = {
    "chioce": ("lr: {loguniform: [1.0e-4, 5.0e-3]}", "lr: {chioce: [0.1]}"),
    "-0.1": ("[0.0, 1.0]", "[-0.1, 1.0]"),
    "maxt": ("grace_period: 15", "maxt: 15"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_answered_as_the_page_says(tmp_path, monkeypatch, mistake):
    monkeypatch.chdir(tmp_path)
    right, wrong = MISTAKES[mistake]
    (tmp_path / "sweep.yaml").write_text(FILE.replace(right, wrong))
    with pytest.raises(UserError) as raised:
        validate(load_experiments("sweep.yaml", {})[0])
    assert f"rllib: {raised.value}\n" in PAGE
