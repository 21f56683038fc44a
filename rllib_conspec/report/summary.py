"""At the end of a run: the critical steps found, in words and as a picture."""

from __future__ import annotations

from pathlib import Path

from rllib_conspec.errors import UserError
from rllib_conspec.report.found import find, load_learner

PICTURE = "prototypes.png"


def describe_prototypes(
    checkpoint: str | Path, directory: str | Path
) -> tuple[list[str], Path | None]:
    """Lines that say what the prototypes found, and their picture, written into `directory`.

    Nothing when the run had no ConSpec.
    """
    try:
        learner = load_learner(checkpoint)
    except UserError:
        return [], None
    found = find(learner)
    if not found:
        return ["no critical step yet: no prototype has met the criterion"], None
    from rllib_conspec.report.prototypes import draw_prototypes

    return [str(f) for f in found], draw_prototypes(found, Path(directory) / PICTURE)
