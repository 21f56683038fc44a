"""The experiment files that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rllib_conspec.errors import UserError, did_you_mean

# Next to the package, in a clone and in an installation alike.
_DIRECTORY = Path(__file__).resolve().parents[2] / "tuned_examples"


def directory() -> Path:
    if not _DIRECTORY.is_dir():
        raise UserError(f"the examples are missing: no directory {_DIRECTORY}.")
    return _DIRECTORY


def names() -> dict[str, Path]:
    """Example files by name: `keys2`, `ablations/keys4_no_freezing` …"""
    root = directory()
    # Folder by folder, what a newcomer runs first.
    files = sorted(root.rglob("*.yaml"), key=lambda file: (len(file.parts), file))
    return {file.relative_to(root).with_suffix("").as_posix(): file for file in files}


def find(name: str) -> Path:
    known = names()
    name = name.removesuffix(".yaml").removeprefix("tuned_examples/")
    # The last part alone is enough.
    short = {key.rpartition("/")[2]: file for key, file in known.items()}
    file = known.get(name) or short.get(name)
    if file is None:
        raise UserError(f'no example "{name}".{did_you_mean(name, [*known, *short])}')
    return file


def headline(file: Path) -> str:
    """The first line of the comment at the top of a file."""
    for line in file.read_text().splitlines():
        if line.startswith("#") and line.strip("# "):
            return line.strip("# ").rstrip(".")
    return ""


def table() -> list[str]:
    known = names()
    width = max(map(len, known), default=0)
    return [f"{name:<{width}}  {headline(file)}" for name, file in known.items()]


def complete(context: Any, parameter: Any, incomplete: str) -> list[str]:
    """Shell completion of example names."""
    return [name for name in names() if name.startswith(incomplete)]
