"""The page in a real browser: what is on it, what hovering and the keyboard do, what axe says."""

import pytest
from browser import LAPTOP, PHONE, opened
from trials_on_disk import write_trial

from rllib_conspec.report.page.build import write_report

FOCUSED = """() => {
  const e = document.activeElement;
  if (!window.order) window.order = [...document.querySelectorAll('*')];
  return window.order.indexOf(e);
}"""
# Everything that does something when it is pressed or scrolled, and is to be seen.
REACHED = """() => {
  const every = [...document.querySelectorAll('*')];
  const asked = 'a[href], button, summary, .plot, .scroll, pre';
  return [...document.querySelectorAll(asked)].filter(e => e.checkVisibility())
    .map(e => every.indexOf(e));
}"""


@pytest.fixture(scope="module")
def laptop(page, browser):
    with opened(browser, page.path.as_uri(), LAPTOP) as watched:
        watched.page.wait_for_selector(".plot .main-svg")
        yield watched


def test_as_many_galleries_as_prototypes(laptop):
    assert laptop.page.locator(".gallery").count() == 2
    broken = "[...document.images].filter(i => !i.complete || !i.naturalWidth).length"
    assert laptop.page.locator(".gallery img").count() > 2 and laptop.page.evaluate(broken) == 0


def test_hovering_shows_values(laptop):
    plot = laptop.page.locator('.plot[data-figure="success-steps"]')
    plot.hover()
    hover = plot.locator(".hoverlayer .legend")
    hover.wait_for()
    assert "mine : 0." in hover.text_content()


def test_arrow_keys_show_values(laptop):
    plot = laptop.page.locator('.plot[data-figure="return-steps"]')
    laptop.page.mouse.move(0, 0)
    plot.focus()
    for _ in range(3):
        laptop.page.keyboard.press("ArrowRight")
    plot.locator(".hoverlayer .legend").wait_for()
    assert laptop.page.locator("#said").text_content().startswith("environment steps ")
    assert "mine: " in laptop.page.locator("#said").text_content()


def test_curves_against_time(laptop):
    plot = laptop.page.locator('.plot[data-choice="success"]')
    laptop.page.get_by_role("button", name="Time").press("Enter")
    plot.locator("text=seconds").wait_for()
    laptop.page.get_by_role("button", name="Steps").press("Enter")
    plot.locator("text=environment steps").wait_for()


def test_the_keyboard_reaches_everything(laptop):
    laptop.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    wanted = set(laptop.page.evaluate(REACHED))
    laptop.page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(2 * len(wanted)):
        laptop.page.keyboard.press("Tab")
        reached.add(laptop.page.evaluate(FOCUSED))
        if wanted <= reached:
            break
    assert len(wanted) > 20 and wanted <= reached


@pytest.mark.parametrize(("size", "scheme"), [(LAPTOP, "light"), (PHONE, "dark")])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(page, browser, size, scheme):
    with opened(browser, page.path.as_uri(), size, scheme) as watched:
        watched.page.wait_for_selector(".plot .main-svg")
        watched.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert watched.violations() == []
        assert watched.overflow() == 0


@pytest.fixture(scope="module")
def sweep_page(tmp_path_factory):
    """Of six trials whose success rises with their learning rate."""
    results = tmp_path_factory.mktemp("swept")
    for i in range(6):
        params = {"lr": 10.0 ** (i - 6), "conspec": {"coeff": (i * 5 % 6) / 10}, "seed": 0}
        write_trial(results / "swept" / f"trial_{i}", [i / 10] * 40, params)
    return write_report([str(results)], results / "out").page


@pytest.mark.parametrize(("size", "scheme"), [(LAPTOP, "dark"), (PHONE, "light")])
def test_what_mattered_in_a_sweep(sweep_page, browser, size, scheme):
    with opened(browser, sweep_page.as_uri(), size, scheme) as watched:
        section = watched.page.locator("#mattered")
        plot = section.locator(".plot")
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
        assert plot.locator(".scatterlayer .trace").count() == 6
        plot.focus()
        said = []
        for _ in range(3):
            watched.page.keyboard.press("ArrowRight")
            said.append(watched.page.locator("#said").text_content().partition(": ")[2])
        assert sorted(said) == ["conspec.coeff 0.1", "lr 0.1", "success rate 0.5"]
        rows = {
            row.locator("th").text_content(): row.locator("td").all_text_contents()
            for row in section.locator("tbody tr").all()
        }
        assert rows["lr"][1:] == ["0.1", "1e-06 – 0.1"] and set(rows) == {"lr", "conspec.coeff"}
        assert watched.violations() == [] and watched.overflow() == 0
