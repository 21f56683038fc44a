"""Lets the tests of this folder, and Ray's workers, import `tiny`, which stands beside them."""

import os
import sys
from pathlib import Path

import pytest

FOLDER = str(Path(__file__).parent)
sys.path.insert(0, FOLDER)
# Ray starts its workers with the environment of the process that starts Ray.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, os.environ.get("PYTHONPATH")]))


@pytest.fixture
def built(ray_local):
    """Builds algorithms, and stops them at the end of the test."""
    running = []

    def build(config):
        running.append(config.build_algo())
        return running[-1]

    yield build
    for algo in running:
        algo.stop()
