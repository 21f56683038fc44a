"""A user's own file is found in the current directory, and hides nothing."""

import subprocess
import sys

import pytest

from rllib_conspec.importing import import_module

# A console script: the first entry of sys.path is the script's directory, not the current one.
SCRIPT = """
import sys
sys.path.pop(0)
from rllib_conspec.importing import import_module
{}
"""


def run(folder, code):
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(code)], cwd=folder, capture_output=True, text=True
    )
    return answer.stdout.strip() + answer.stderr.strip()


def test_a_file_of_the_current_directory_is_found_with_its_neighbours(tmp_path):
    (tmp_path / "my_room.py").write_text(
        "def size():\n    import my_sizes\n    return my_sizes.N\n"
    )
    (tmp_path / "my_sizes.py").write_text("N = 3\n")
    assert run(tmp_path, "print(import_module('my_room').size())") == "3"


def test_installed_modules_come_first(tmp_path):
    (tmp_path / "my_room.py").write_text("")
    (tmp_path / "wave.py").write_text("raise RuntimeError\n")
    code = "import_module('my_room'); print(import_module('wave').Wave_read.__name__)"
    assert run(tmp_path, code) == "Wave_read"


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "needs_more.py").write_text("import something_missing\n")
    with pytest.raises(ModuleNotFoundError, match="something_missing"):
        import_module("needs_more")
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        import_module("nowhere_at_all.inside")
