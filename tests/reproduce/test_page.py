import numpy as np

from rllib_conspec.report.curves import Curve
from rllib_conspec.reproduce.expectations import Outcome
from rllib_conspec.reproduce.page import Account, page
from rllib_conspec.reproduce.picture import draw
from rllib_conspec.reproduce.table import FIGURES

FIGURE = FIGURES["stop_gradient"]
LINES = FIGURE.lines("small")


def outcomes(good, bad):
    def run(seed, reached, ended=True):
        last = 0.95 if reached else 0.1
        steps = np.array([1000.0, reached or 5_000_000.0])
        return Outcome(seed, Curve(steps, np.array([0.0, last])), ended)

    found = {}
    for line, values in zip(LINES, (good, bad), strict=True):
        found[line.key] = [run(seed, value) for seed, value in enumerate(values)]
    return found


def test_claim_verdict_and_numbers_stand_under_the_picture(tmp_path):
    found = outcomes([2e6, 1e6, 3e6], [None, None, None])
    text = page(FIGURE, LINES, found, Account("small", "rllib reproduce x", "x.png", ("a.csv",)))
    assert text.index("![4 keys, stop-gradient](x.png)") < text.index(FIGURE.claim)
    assert text.index(FIGURE.claim) < text.index("**Here: agrees.**")
    assert "- agrees: 4 keys: stop-gradient is not solved: solved by 0 of 3 seeds" in text
    numbers = "| 3 of 3 | 2,000,000 (1,000,000, 3,000,000) |"
    assert f"| 4 keys: gradient | 3 | 1,000,000 to 3,000,000 | 0.95 (0.95, 0.95) {numbers}" in text
    assert "| 0 of 3 | never (never, never) |" in text
    assert "`a.csv`" in text and "```\nrllib reproduce x\n```" in text


def test_what_disagrees_and_what_is_missing_is_said():
    found = outcomes([2e6, 1e6, 3e6], [1e6, 1e6, None])
    account = Account("small", "", "x.png", missing=("TVT",))
    text = page(FIGURE, LINES, found, account)
    assert "**Here: disagrees.**" in text
    assert "Not there yet, and therefore not in the picture: TVT." in text
    nothing = page(FIGURE, LINES, {}, account)
    assert "**Here: undecided.**" in nothing and "| 4 keys: gradient | 0 |" in nothing


def test_a_picture_has_a_panel_for_every_task_also_without_results(tmp_path):
    figure = FIGURES["rivals"]
    lines = figure.lines("small")
    steps = Curve(np.array([1.0, 2.0]), np.array([0.0, 1.0]))
    found = {lines[0].key: [Outcome(0, steps, True)]}
    path = draw(figure, lines, found, tmp_path / "picture.png")
    assert path.read_bytes().startswith(b"\x89PNG")
