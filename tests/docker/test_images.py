"""The Dockerfile and the Apptainer definition agree with each other and with `make install`."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "docker/Dockerfile").read_text()
DEFINITION = (ROOT / "docker/apptainer.def").read_text()
BOTH = pytest.mark.parametrize("text", [DOCKERFILE, DEFINITION], ids=["Dockerfile", "apptainer"])


def instructions() -> list[tuple[str, str]]:
    """(name, rest) of each instruction, continued lines joined."""
    joined = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", DOCKERFILE))
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def code(text: str) -> str:
    return re.sub(r"(?m)^\s*#.*$", "", text)


def test_the_container_is_not_root_and_runs_rllib():
    last = dict(instructions())
    assert last["USER"].isdigit() and int(last["USER"]) > 0
    assert f"--uid {last['USER']} " in DOCKERFILE
    assert last["ENTRYPOINT"] == '["rllib"]'
    assert re.search(r'%runscript\n\s+exec rllib "\$@"\n', DEFINITION)


@BOTH
def test_every_package_comes_from_requirements(text):
    (pip_pin,) = set(re.findall(r"pip==[\d.]+", (ROOT / "Makefile").read_text()))
    joined = re.sub(r"\\\n", " ", code(text))
    installs = re.findall(r"pip install (.*?)(?:&&|\n|$)", joined)
    assert len(installs) == 3
    upgrade, requirements, own = installs
    assert upgrade.split()[-1] == pip_pin
    assert "-r /opt/rllib_conspec/requirements.txt" in requirements
    assert "--no-deps" in own and "--no-build-isolation" in own
    # Versions are decided in one place only.
    assert set(re.findall(r"\w+==[\d.]+", joined)) == {pip_pin}


@BOTH
def test_what_it_is_built_from_can_be_chosen(text):
    for default in ("BASE=python:3.11-slim-bookworm", "DEVICE=cuda", "TORCH_INDEX="):
        assert re.search(rf"(?m)^(ARG|\s+) ?{re.escape(default)}", text), default


@BOTH
def test_no_package_index_is_named(text):
    assert "://" not in text


def test_dependencies_are_installed_before_the_source_is_copied():
    lines = [f"{name} {rest}" for name, rest in instructions()]
    install = next(
        i for i, line in enumerate(lines) if "requirements.txt" in line and "pip" in line
    )
    source = next(i for i, line in enumerate(lines) if line.startswith("COPY . "))
    assert install < source


def test_both_take_the_same_files():
    lines = (ROOT / ".dockerignore").read_text().split()
    kept = {line[1:] for line in lines if line.startswith("!")}
    section = re.search(r"%files\n(.*?)\n\n", DEFINITION, re.DOTALL).group(1)
    assert kept == {line.split()[0] for line in section.splitlines()}
    assert all((ROOT / name).exists() for name in kept)


@pytest.mark.parametrize("name", ["check", "check_apptainer"])
def test_the_checks_are_programs_that_bash_can_read(name):
    script = ROOT / "docker" / name
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)


def test_the_check_says_in_one_line_why_it_cannot_run():
    """Without root (dropped here if we have it) it stops before it touches anything."""
    command = ["bash", str(ROOT / "docker/check")]
    bare = {"PATH": "/usr/bin:/bin"}
    drop = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    ended = subprocess.run([*drop, *command], capture_output=True, text=True, env=bare)
    assert ended.returncode == 1 and ended.stdout == ""
    assert ended.stderr.startswith("docker/check: needs root") and ended.stderr.count("\n") == 1
