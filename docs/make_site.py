"""Builds the documentation as a site: ``python docs/make_site.py``. It takes three seconds.

The pages are plain Markdown, as code hosts show it. What a code host does besides is done here, in
a copy of the pages in build/pages/: sources that they link to become pages of their own, and
formulas become MathML, which browsers draw without a script. From that Zensical makes site/, as
mkdocs.yml says, and refuses a link that leads nowhere.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from latex2mathml.converter import convert

ROOT = Path(__file__).resolve().parents[1]
CONFIG = "mkdocs.yml"
CODE = r"(?P<code>^( *)```.*?^\2```|`[^`\n]*`)"  # in which nothing is a link
LINK = re.compile(rf"{CODE}|\]\((?!\w+:)(?P<path>[^)\s#]+)", re.DOTALL | re.MULTILINE)
FORMULA = re.compile(
    r"^```math\n(?P<block>.*?)^```|\$`(?P<inline>.+?)`\$", re.DOTALL | re.MULTILINE
)
# Sources are for who follows a link, and would drown the pages in search results.
NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
LANGUAGES = {".py": "python", ".yaml": "yaml", ".sh": "bash"}


def build(directory: Path, root: Path = ROOT) -> Path:
    """Build the site of the repository `root` below `directory`; returns where it is."""
    stage(directory / "build" / "pages", root)
    config = directory / CONFIG
    if directory != root:
        shutil.copy(root / CONFIG, config)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", str(config)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
        raise SystemExit(f"{said}make_site: the pages have faults, see above.")
    return directory / "site"


def stage(pages: Path, root: Path = ROOT) -> None:
    """Write all that is to be a page, and what pages show or link to, into `pages`."""
    shutil.rmtree(pages, ignore_errors=True)
    left = [path.relative_to(root).as_posix() for path in root.glob("docs/**/*.md")]
    seen = set(left)
    while left:
        name = left.pop()
        target = pages / place(name, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix != ".md":  # pictures and tables
            shutil.copy(root / name, target)
            continue
        text = page(name, root)
        target.write_text(with_formulas(relinked(text, name, root)))
        found = {*links(text, name, root)}
        left += found - seen
        seen |= found


def place(name: str, root: Path = ROOT) -> str:
    """Where a file or folder of the repository is among the pages."""
    where = name.removeprefix("docs/") if name.startswith("docs/") else f"source/{name}"
    if (root / name).is_dir():
        return f"{where}/index.md"
    return f"{where}.md" if (root / name).suffix in LANGUAGES else where


def page(name: str, root: Path = ROOT) -> str:
    """A file or folder of the repository as Markdown."""
    path = root / name
    if path.is_dir():
        names = sorted(p.name for p in path.iterdir() if p.is_file())
        listed = "".join(f"- [{n}]({path.name}/{n})\n" for n in names)
        return f"{NOT_SEARCHED}# {name}\n\n{listed}"
    text = path.read_text()
    if name.endswith(".md"):
        return text if name.startswith("docs/") else NOT_SEARCHED + text
    return f"{NOT_SEARCHED}# {name}\n\n```{LANGUAGES.get(path.suffix, 'text')}\n{text}```\n"


def links(text: str, name: str, root: Path = ROOT) -> Iterator[str]:
    """Files and folders of the repository that a page links to."""
    for match in LINK.finditer(text):
        if match["path"]:
            yield _target(match["path"], name, root)


def relinked(text: str, name: str, root: Path = ROOT) -> str:
    """The page with its links leading to where things are among the pages."""
    here = PurePosixPath(place(name, root)).parent

    def moved(match: re.Match) -> str:
        if not match["path"]:
            return match[0]
        there = place(_target(match["path"], name, root), root)
        return f"]({os.path.relpath(there, here)}"

    return LINK.sub(moved, text)


def _target(path: str, name: str, root: Path) -> str:
    target = os.path.normpath(PurePosixPath(name).parent / path)
    if not (root / target).exists():
        raise SystemExit(f"make_site: {name} links to {path}, which does not exist.")
    return target


def with_formulas(text: str) -> str:
    """The page with its formulas as MathML."""

    def drawn(match: re.Match) -> str:
        if match["block"]:
            return f"{convert(match['block'].strip(), display='block')}\n"
        # In a span, because Markdown takes an element at the beginning of a line for a block.
        return f"<span>{convert(match['inline'])}</span>"

    return FORMULA.sub(drawn, text)


if __name__ == "__main__":
    site = build(ROOT)
    print(f"Built. Look at it with: python -m http.server --bind 127.0.0.1 -d {site.name}")
