"""The page of options says what the code says."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_page_is_current():
    spec = importlib.util.spec_from_file_location("make_options", DOCS / "make_options.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / "options.md").read_text() == module.page(), "run python docs/make_options.py"
