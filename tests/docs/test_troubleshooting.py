"""Every message that docs/troubleshooting.md explains is one that the code can give."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
# First cells of the tables that are a message and nothing else.
MESSAGES = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
HINTS = ROOT / "rllib_conspec" / "reward_models" / "conspec" / "hints.py"


def texts(file):
    """Texts of a source file as they come out: joined, with "…" for what is put in."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values)


@pytest.fixture(scope="module")
def said():
    return [text for file in (ROOT / "rllib_conspec").rglob("*.py") for text in texts(file)]


def test_messages_of_the_page_are_in_the_code(said):
    def given(message):
        pattern = re.compile(".*".join(map(re.escape, message.strip("…").split("…"))), re.DOTALL)
        return any(pattern.search(text) for text in said)

    assert len(MESSAGES) > 30
    assert [message for message in MESSAGES if not given(message)] == []


def test_every_hint_of_conspec_is_explained():
    hints = {text for text in texts(HINTS) if re.fullmatch("(no|all) .*[.]", text)}
    assert len(hints) == 4
    explained = tuple(hint.partition(".")[0] for hint in hints)
    assert sum(message.startswith(explained) for message in MESSAGES) == 4
