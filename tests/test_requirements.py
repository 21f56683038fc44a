"""requirements.txt pins everything, and pins what pyproject.toml asks for."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]


def pins() -> dict[str, Requirement]:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    texts = [line.partition("#")[0].strip() for line in lines]
    found = [Requirement(text) for text in texts if text]
    names = [canonicalize_name(requirement.name) for requirement in found]
    assert len(set(names)) == len(names), "a package is listed twice"
    return dict(zip(names, found, strict=True))


def exact_version(requirement: Requirement) -> str:
    (specifier,) = requirement.specifier
    assert specifier.operator == "==" and "*" not in specifier.version, str(requirement)
    return specifier.version


def test_every_requirement_is_pinned_exactly():
    for requirement in pins().values():
        exact_version(requirement)


def test_the_pins_satisfy_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = pins()
    for line in [*project["dependencies"], *project["optional-dependencies"]["dev"]]:
        asked = Requirement(line)
        pin = pinned[canonicalize_name(asked.name)]
        assert asked.specifier.contains(exact_version(pin)), f"{asked} but {pin}"
        assert asked.extras <= pin.extras, f"{asked} but {pin}"
