"""One real Slurm for the tests of this folder. Where it cannot be started they say why."""

import functools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import real_slurm

why_not = functools.cache(real_slurm.missing)


def pytest_runtest_setup(item):
    # Not in the fixture: pytest's summary then has one line for all these tests, not one for each.
    if "slurm" in item.fixturenames and why_not():
        pytest.skip(f"no real Slurm here: {why_not()}")


@pytest.fixture(scope="session")
def slurm():
    with real_slurm.RealSlurm() as running:
        yield running


@pytest.fixture
def idle_slurm(slurm):
    """Slurm without jobs, also afterwards: whatever a test leaves is cancelled."""
    yield slurm
    slurm.login.run("scancel", "--me")
    real_slurm.wait_until(lambda: not slurm.squeue(), "the queue is empty")
