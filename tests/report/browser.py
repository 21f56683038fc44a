"""A real browser for pages: Debian's chromium, through playwright, with axe.

Where it cannot be started `missing` says why. Use the fixture `browser` (tests/report/conftest.py);
`opened` gives a page and holds it to what every page of ours promises.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

PROGRAM = "chromium"
LAPTOP, PHONE = (1440, 900), (390, 844)
# Chromium's sandbox refuses to work for root, and /dev/shm is small in containers.
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"]
MILLISECONDS = 120_000  # far longer than anything takes on two busy cores


def missing() -> str | None:
    """Why there is no browser here, in a few words, or None. Installs it if it may."""
    if shutil.which(PROGRAM):
        return None
    if not shutil.which("apt-get"):
        return f"needs {PROGRAM}, and there is no apt-get"
    with Path(tempfile.gettempdir(), "rllib_conspec-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process of these tests may be at it already
        if not shutil.which(PROGRAM):
            _install()
    return None if shutil.which(PROGRAM) else f"apt-get could not install {PROGRAM}"


def _install() -> None:
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "capture_output": True}
    for words in (["update"], ["install", "-y", "--no-install-recommends", PROGRAM]):
        subprocess.run(["apt-get", *words], check=False, **quiet)


@contextlib.contextmanager
def started() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which(PROGRAM), args=ARGUMENTS, timeout=MILLISECONDS
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A page, what it wrote to its console, and what it asked for elsewhere."""

    page: Page
    errors: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # requests to other machines

    def violations(self) -> list[str]:
        """What axe finds wrong, one line for every kind with where it is."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{v['id']}: " + "; ".join(" ".join(map(str, n["target"])) for n in v["nodes"][:5])
            for v in found
        ]

    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )


@contextlib.contextmanager
def opened(browser: Browser, url: str, size=LAPTOP, scheme: str = "light") -> Iterator[Watched]:
    """Open `url` in a window of this size, and at the end check that nothing went wrong: no console
    error, no exception, no request that leaves the machine.
    """
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
    )
    context.set_default_timeout(MILLISECONDS)
    try:
        watched = Watched(context.new_page())
        page = watched.page
        page.on("console", lambda m: m.type == "error" and watched.errors.append(m.text))
        page.on("pageerror", lambda error: watched.errors.append(str(error)))
        page.on(
            "request", lambda request: _leaves(request.url) and watched.left.append(request.url)
        )
        page.goto(url)
        yield watched
        assert not watched.errors, watched.errors
        assert not watched.left, watched.left
    finally:
        context.close()


def _leaves(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("http", "https", "ws", "wss", "ftp") and parts.hostname not in (
        "127.0.0.1",
        "localhost",
        "::1",
    )
