"""YAML with nothing but data: `yaml.safe_load` that also refuses duplicate keys."""

from __future__ import annotations

import re
from typing import Any

import yaml

from rllib_conspec.errors import UserError


class _StrictLoader(yaml.SafeLoader):
    """A SafeLoader for which a key given twice is an error and `1e-4` is a number."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if str(key) in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f'the key "{key}" is given twice', key_node.start_mark
                )
            seen.add(str(key))
        return super().construct_mapping(node, deep)


# YAML 1.1 reads "1e-4" as text because there is no dot in it; everyone means the number.
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d[\d_]*)(\.[\d_]*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)


def load(text: str, source: str) -> Any:
    """Parse `text`; a mistake becomes one line that names `source`, line and column."""
    try:
        # Derived from SafeLoader: only plain data can come out of it.
        return yaml.load(text, _StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UserError(f"{source}: {place}{error.problem or error.context}.") from error
    except yaml.YAMLError as error:
        raise UserError(f"{source}: {' '.join(str(error).split())}") from error
