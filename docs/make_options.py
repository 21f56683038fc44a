"""Write docs/options.md from the options themselves. Run it after changing an option."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from rllib_conspec.retrospection.options import ConSpecOptions

PAGE = Path(__file__).parent / "options.md"
HEAD = """# Options of ConSpec

Under `conspec:` in an experiment file, or `ConSpecConfig().conspec(...)` in Python. The defaults
are the paper's values for the key tasks. This page is written by `docs/make_options.py`.

| option | default | meaning |
|---|---|---|
"""


def _said(default: object) -> str:
    """A default as an experiment file would have it."""
    if default is None:
        return "–"
    return str(default).lower() if isinstance(default, bool) else str(default)


def page() -> str:
    """The whole page as Markdown."""
    rows = []
    for field in fields(ConSpecOptions):
        default = _said(field.default)
        choices = field.metadata["choices"]
        listed = f" One of {', '.join(f'`{c}`' for c in choices)}." if choices else ""
        meaning = field.metadata["help"].replace("|", "\\|")
        meaning = f"{meaning}.{listed}"
        rows.append(f"| `{field.name}` | {default} | {meaning} |")
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
