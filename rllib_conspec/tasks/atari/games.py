"""Games by name, and their ROMs."""

from __future__ import annotations

import os
import re
from pathlib import Path

os.environ.setdefault("ALE_PY_SILENT", "1")

from ale_py import roms

from rllib_conspec.errors import OptionError, did_you_mean


def rom_id(game: str) -> str:
    """The ROM of a game that a user names as `AirRaid`, `air_raid` or `ALE/AirRaid-v5`; an
    OptionError names `game` where there is no such game or its ROM cannot be used.
    """
    name = game.removeprefix("ALE/").removesuffix("-v5")
    known = {_letters(id): id for id in roms.get_all_rom_ids()}
    id = known.get(_letters(name))
    if id is None:
        hint = did_you_mean(name, map(title, known.values()))
        raise OptionError("game", f'there is no game "{game}".{hint}')
    try:
        roms.get_rom_path(id)
    except FileNotFoundError as error:
        where = Path(error.filename)
        raise OptionError(
            "game",
            f"the ROM of {title(id)} is missing: {where.name} is not in {where.parent}. ale-py "
            "brings it along: install that again, or put the file there.",
        ) from error
    except OSError as error:  # another file of that name, or ALE_ROMS_DIR leads nowhere
        text = " ".join(str(error).split())
        raise OptionError("game", f"the ROM of {title(id)} cannot be used: {text}") from error
    return id


def title(id: str) -> str:
    """`AirRaid` of `air_raid`."""
    return "".join(part.capitalize() for part in id.split("_"))


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
