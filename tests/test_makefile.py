"""Which Python `make` takes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("python3", "python3.13", "python3.12", "python3.11")


@pytest.fixture
def make(tmp_path):
    """Calls `make` in a checkout without .venv, where only these Pythons suit."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)

    def call(*words, suit):
        for name in PYTHONS:
            # The others are there and fail, as the commands of version managers do, or old Pythons.
            does = f'exec {sys.executable} "$@"' if name in suit else "exit 127"
            (folder / name).write_text(f"#!/bin/sh\n{does}\n")
            (folder / name).chmod(0o755)
        # Not what a `make test` around this test was given.
        kept = {k: v for k, v in os.environ.items() if "MAKE" not in k and k != "PYTHON"}
        environment = {**kept, "PATH": f"{folder}:{os.environ['PATH']}"}
        return subprocess.run(
            ["make", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    return call


@pytest.mark.parametrize(
    ("suit", "taken"),
    [
        (PYTHONS, "python3"),  # the machine's own
        (("python3.13", "python3.12", "python3.11"), "python3.13"),
        (("python3.12", "python3.11"), "python3.12"),
        (("python3.11",), "python3.11"),
    ],
)
def test_the_machines_own_python_or_the_newest_is_taken(make, suit, taken):
    assert f'python="{taken}"' in make("--dry-run", "install", suit=suit).stdout


def test_another_one_can_be_named(make):
    done = make("--dry-run", "install", "PYTHON=/opt/mine/python", suit=PYTHONS)
    assert 'python="/opt/mine/python"' in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "python3: not found, or not"), (("PYTHON=python3.12",), "python3.12: not found, or not")],
)
def test_none_that_suits_is_said_before_anything_is_made(make, tmp_path, words, said):
    done = make("train", *words, suit=())
    assert done.returncode != 0
    assert done.stderr.startswith(f"{said} Python 3.11, 3.12 or 3.13. ")
    assert "make PYTHON=/path/to/python3.13 train" in done.stderr
    assert not (tmp_path / ".venv").exists()
