"""The page in a real browser, of a run whose rows and checkpoint are written by this test."""

import json
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from browser import LAPTOP, PHONE, opened
from serving import Results, served, until
from told import episode, row, write_checkpoint

from rllib_conspec.report.live.drawing import draw
from rllib_conspec.report.live.galleries import Galleries

CURVE = "document.querySelector('#learning .plot').data[0].x.length"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Forty iterations, and a checkpoint in which two things were found."""
    results = Results(tmp_path_factory.mktemp("results") / "trial", 40)
    frames = [np.full((10, 6, 6, 3), (0, 200, 10 * k), np.uint8) for k in range(2)]
    rows = tuple(row([episode(f)] * 3, [1, 4, 7], f"thing {k}") for k, f in enumerate(frames))
    told = {"told:Told": {"lines": ("thing 1: seen", "all: told"), "galleries": {"things": rows}}}
    write_checkpoint(results.path / "checkpoint_000001", told)
    return results


@pytest.fixture(scope="module")
def address(results):
    answer = results.path / "answer.py"  # importing all that drawing needs once more takes seconds
    answer.write_text(f"print({json.dumps(draw(results.path))!r})")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Galleries, "command", (sys.executable, "-S", str(answer)))
        with served(results.path.parent) as address:
            yield address


@contextmanager
def shown(browser, address, size, scheme):
    """The page, as soon as all is there that it will have."""
    with opened(browser, address, size, scheme) as watched:
        watched.page.wait_for_selector("#learning .plot .main-svg")
        watched.page.wait_for_selector(".gallery img")
        yield watched


def test_it_follows_the_run_without_a_reload(browser, address, results):
    with shown(browser, address, LAPTOP, "light") as watched:
        page = watched.page
        page.evaluate("window.kept = true")
        assert page.locator("#pulse").inner_text() == "waiting"  # rows without a time
        assert page.locator(".gallery").count() == 2 and page.locator(".gallery img").count() == 6
        assert "score 0.89" in page.locator(".gallery").nth(1).inner_text()
        found = page.locator("#found").inner_text()
        assert "all: told" in found and "thing 1: seen" not in found  # the row says it
        until(page, "[...document.images].every((i) => i.naturalWidth > 5)")
        points = page.evaluate(CURVE)
        results.write(points + 1, incidents=["rollout worker 1 died"])
        until(page, f"{CURVE} === {points + 1}")
        page.get_by_text("rollout worker 1 died").wait_for()
        assert page.locator("#facts").inner_text().startswith(f"iteration\n{points + 1}\n")
        results.write(points + 2, iterations_since_restore=1)
        until(page, f"{CURVE} === {points + 2}")
        page.get_by_text(f"resumed after iteration {points + 1}").wait_for()
        assert page.evaluate("document.querySelector('#learning .plot').layout.shapes.length") == 1
        assert page.evaluate("window.kept")
        assert not watched.violations() and watched.overflow() == 0


def test_a_phone_in_the_dark(browser, address):
    with shown(browser, address, PHONE, "dark") as watched:
        assert not watched.violations() and watched.overflow() == 0
        line = watched.page.evaluate("document.querySelector('#learning .plot').data[0].line.color")
        assert line == "#6cb0ee"  # of the dark ones


DATA = """() => document.querySelector('#learning .plot').data
  .map(({ x, y }) => [...x].map((at, i) => [at, y[i]]))"""
FOCUSED = """() => {
  const focused = document.activeElement;
  return [...document.querySelectorAll('a[href], button, select, summary, .plot')]
    .filter(e => e.checkVisibility()).indexOf(focused);
}"""


def test_hovering_and_arrow_keys_show_values(browser, address):
    with shown(browser, address, LAPTOP, "light") as watched:
        page = watched.page
        card = page.locator("#learning .card").first
        plot = card.locator(".plot")
        plot.hover()
        plot.locator(".hoverlayer .legend").wait_for()
        (points,) = page.evaluate(DATA)
        at = [line.text_content() for line in plot.locator(".hoverlayer text").all()]
        assert [float(text) for text in at if text] in points, at
        page.mouse.move(0, 0)
        plot.focus()
        for _ in range(3):
            page.keyboard.press("ArrowLeft")
        plot.locator(".hoverlayer .legend").wait_for()
        told = [plot.get_attribute("aria-valuetext"), card.locator(".readout").text_content()]
        steps = page.evaluate(
            f"document.querySelector('#learning .plot').data[0].x.at({CURVE} - 4)"
        )
        assert told[0] == told[1] and told[0].startswith(f"{steps:,.0f} environment steps: ")


def test_the_keyboard_reaches_everything(browser, address):
    with shown(browser, address, LAPTOP, "light") as watched:
        page = watched.page
        every = page.locator("a[href], button, select, summary, .plot").locator("visible=true")
        reached = set()
        for _ in range(3 * every.count()):
            page.keyboard.press("Tab")
            reached.add(page.evaluate(FOCUSED))
        assert every.count() > 4 and reached >= set(range(every.count()))
