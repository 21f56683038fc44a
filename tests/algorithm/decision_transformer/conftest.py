"""Lets the tests of this folder, and Ray's workers, import `planted_game`; and what they share."""

import os
import sys
from pathlib import Path

import pytest

FOLDER = str(Path(__file__).parent)
sys.path.insert(0, FOLDER)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, os.environ.get("PYTHONPATH")]))


@pytest.fixture(scope="session")
def recording(tmp_path_factory):
    from planted_game import record

    return record(tmp_path_factory.mktemp("coins") / "coins.rec")
