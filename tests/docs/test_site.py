"""The site: built from the pages without a warning, every link in it resolves, and nothing in it is
fetched from elsewhere.
"""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("use", "href")}


@pytest.fixture(scope="module")
def make_site(script):
    return script("make_site")


@pytest.fixture(scope="module")
def site(make_site, tmp_path_factory):
    return make_site.build(tmp_path_factory.mktemp("built"))


class Page(HTMLParser):
    """What a page of the site links to, loads and can be linked to."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loads = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.anchors.add(value)
            elif (tag, name) in LOADED and value:
                self.loads.append(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_link_of_the_site_leads_somewhere(pages):
    lost = []
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and anchor not in pages[target].anchors):
                lost.append((path.name, link))
    assert len(pages) > 20 and not lost


def test_nothing_is_loaded_from_elsewhere(site, pages):
    away = re.compile(r"(https?:)?//")
    assert [u for page in pages.values() for u in page.loads if away.match(u)] == []
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert len(styles) > 1000 and not re.search(r"(url|@import)\s*\(?[\"']?(https?:)?//", styles)


def test_every_page_is_in_the_navigation():
    parts = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    named = [name for part in parts for names in part.values() for name in names]
    there = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(named) == sorted(there)


def test_formulas_are_drawn_without_a_script(pages, site):
    text = (DOCS / "how_it_works.md").read_text()
    drawn = (site / "how_it_works.html").read_text()
    blocks, inline = text.count("```math"), text.count("$`")
    assert blocks > 4 and inline > 20
    assert drawn.count('display="block"') == blocks
    assert (
        drawn.count('<span><math xmlns="http://www.w3.org/1998/Math/MathML" display="inl') == inline
    )
    assert "merror" not in drawn and "\\" not in re.sub(
        r"<script.*?</script>", "", drawn, flags=re.S
    )


def test_lists_and_tables_come_out_as_on_a_code_host(pages):
    """Markdown of the site wants an empty line before them, code hosts do not."""
    for path in pages:
        article = path.read_text().partition("<article")[2]
        assert not re.search(r"<p>[^<]*(<(?!/p).[^<]*)*\n(- |\d+\. |\| )", article), path.name


@pytest.fixture
def two_pages(tmp_path):
    """A repository of two pages, one of which may be changed."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# One\n\n[two](two.md#here) [it](../it.py)\n")
    (tmp_path / "docs" / "two.md").write_text("# Two\n\n## Here\n\n$`x_1`$ and `$` and `[a](b)`\n")
    (tmp_path / "it.py").write_text('"""[not a link](nowhere)"""\n')
    settings = (ROOT / "mkdocs.yml").read_text()
    (tmp_path / "mkdocs.yml").write_text(re.sub(r"^nav:\n( .*\n)+", "", settings, flags=re.M))
    return tmp_path


def test_what_is_staged(make_site, two_pages):
    make_site.stage(two_pages / "out", two_pages)
    read = {p.name: p.read_text() for p in (two_pages / "out").rglob("*.md")}
    assert set(read) == {"index.md", "two.md", "it.py.md"}
    assert "[two](two.md#here) [it](source/it.py.md)" in read["index.md"]
    assert "<math" in read["two.md"] and "and `$` and `[a](b)`" in read["two.md"]
    assert '```python\n"""[not a link](nowhere)"""\n```' in read["it.py.md"]


def test_a_link_to_nothing_is_refused(make_site, two_pages):
    with (two_pages / "docs" / "two.md").open("a") as file:
        file.write("[gone](gone.md)\n")
    with pytest.raises(SystemExit, match=r"docs/two\.md links to gone\.md, which does not exist"):
        make_site.stage(two_pages / "out", two_pages)


def test_an_anchor_that_is_not_there_is_refused(make_site, two_pages):
    page = two_pages / "docs" / "index.md"
    page.write_text(page.read_text().replace("#here", "#there"))
    with pytest.raises(SystemExit, match=r"(?s)anchor does not exist.*the pages have faults"):
        make_site.build(two_pages, two_pages)
