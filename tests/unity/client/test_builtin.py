import importlib.util
import subprocess
import sys

import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.unity.client import builtin


def test_it_is_the_one_that_was_named_last(monkeypatch):
    monkeypatch.setattr(builtin, "_module", None)
    with pytest.raises(OptionError, match="file_name: is needed: there is no built-in player"):
        builtin.command(8)
    builtin.use("my.player")
    words = [sys.executable, "-m", "my.player", "--agents", "8", "--observations", "png"]
    assert builtin.command(8) == words


def test_its_process_finds_what_this_one_finds_without_site_packages(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "beside.py").write_text("")
    code = """
from importlib.util import find_spec
print(find_spec("beside").origin, find_spec("rllib_conspec").origin)
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=builtin.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    found = importlib.util.find_spec("rllib_conspec").origin
    assert done.stdout.split() == [str(tmp_path / "beside.py"), found]
