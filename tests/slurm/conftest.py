"""One real Slurm for all tests of this folder. Where it cannot be started they say why."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import real_slurm


@pytest.fixture(scope="session")
def slurm():
    reason = real_slurm.missing()
    if reason:
        pytest.skip(f"no real Slurm here: {reason}")
    with real_slurm.RealSlurm() as running:
        yield running


@pytest.fixture
def idle_slurm(slurm):
    """Slurm without jobs, also afterwards: whatever a test leaves is cancelled."""
    yield slurm
    slurm.login.run("scancel", "--me")
    real_slurm.wait_until(lambda: not slurm.squeue(), "the queue is empty")
