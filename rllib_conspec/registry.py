"""Parts that are named in a configuration: registered ones by name, anybody's by import path."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.importing import import_module


@dataclass(frozen=True)
class Registry:
    """Classes of one kind. They are imported when they are asked for."""

    kind: str  # as a user calls it: "reward model"
    base: type
    entries: dict[str, str]  # name → package.module:Class

    def find(self, name: str) -> type:
        """The class of a registered name, or of an import path `package.module:Class`."""
        module, colon, attribute = str(self.entries.get(name, name)).partition(":")
        if not colon:
            known = ", ".join(self.entries)
            raise OptionError(
                str(name),
                f"unknown {self.kind}; there are {known}, and import paths package.module:Class."
                + did_you_mean(str(name), self.entries),
            )
        try:
            found = getattr(import_module(module), attribute)
        except Exception as error:  # whatever the user's module raises
            raise OptionError(str(name), f"cannot import this {self.kind}: {error}.") from None
        if not (inspect.isclass(found) and issubclass(found, self.base)):
            raise OptionError(str(name), f"is no {self.kind}: derive it from {self.base.__name__}.")
        return found

    def options_of(self, name: str, values: Any, preset: str | None = None) -> Any:
        """Checked options of one entry; an option of another entry is answered by naming that."""
        found = self.find(name)
        if not isinstance(values, Mapping):
            raise OptionError(str(name), f"must be a mapping of options, not {values!r}.")
        own = {f.name for f in fields(found.Options)}
        for option in values:
            if option not in own and (owner := self._owner(option)):
                message = f"is an option of {owner}, not of {name}."
                raise OptionError(f"{name}.{option}", message)
        try:
            return found.Options.from_dict({**found.presets.get(preset, {}), **values})
        except OptionError as error:
            raise error.within(name) from None

    def _owner(self, option: str) -> str | None:
        for name in self.entries:
            if option in {f.name for f in fields(self.find(name).Options)}:
                return name
        return None
