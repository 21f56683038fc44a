"""The pip settings that a build is given."""

import configparser
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "docker/pip_conf.py"


def written(tmp_path, listing: str):
    out = tmp_path / "pip_conf"
    ended = subprocess.run(
        [sys.executable, SCRIPT, out], input=listing, capture_output=True, text=True, check=True
    )
    parser = configparser.RawConfigParser()
    parser.read(out)
    return dict(parser["global"]), ended.stdout.split(), out


def test_variables_win_over_install_and_install_over_global(tmp_path):
    listing = ":env:.timeout='3'\nglobal.timeout='1'\ninstall.timeout='2'\n"
    listing += "install.retries='2'\nglobal.retries='1'\n"
    assert written(tmp_path, listing)[0] == {"timeout": "3", "retries": "2"}


def test_settings_about_the_host_stay_there(tmp_path):
    listing = ":env:.require-virtualenv='1'\nglobal.user='true'\ndownload.dest='/x'\n"
    assert written(tmp_path, listing)[0] == {}


def test_lists_over_several_lines_stay_one_value(tmp_path):
    values, _, _ = written(tmp_path, "global.find-links='\\n/a=b\\n/c'\n")
    assert values == {"find-links": "/a=b /c"}


def test_local_paths_are_named_once_and_the_file_is_private(tmp_path):
    (tmp_path / "index/simple").mkdir(parents=True)
    wheels = tmp_path / "index/wheels"
    wheels.mkdir()
    listing = f"global.index-url='file://{tmp_path}/index/simple'\n"
    listing += f"global.find-links='{wheels} {tmp_path}/missing'\n"
    _, paths, out = written(tmp_path, listing)
    # The packages lie beside an index of files, so its parent is needed; the wheels lie in it.
    assert paths == [str(tmp_path / "index")]
    assert out.stat().st_mode & 0o077 == 0
