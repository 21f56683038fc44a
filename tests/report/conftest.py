"""Lets the tests of this folder, and `find_model`, import what stands beside them; one browser."""

import functools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import browser as browsers

why_not = functools.cache(browsers.missing)


def pytest_runtest_setup(item):
    # Not in the fixture: pytest's summary then has one line for all these tests, not one for each.
    if "browser" in item.fixturenames and why_not():
        pytest.skip(f"no browser here: {why_not()}")


@pytest.fixture(scope="session")
def browser():
    with browsers.started() as running:
        yield running
