"""At the end of a run: the critical steps found, in words and as a picture beside the checkpoint."""

from __future__ import annotations

from pathlib import Path

from rllib_conspec.errors import UserError
from rllib_conspec.report.found import find, load_learner

PICTURE = "prototypes.png"


def describe_prototypes(checkpoint: str | Path, directory: str | Path) -> list[str]:
    """Lines that say what the prototypes found; their picture is written into `directory`.

    Empty when the run had no ConSpec.
    """
    try:
        learner = load_learner(checkpoint)
    except UserError:
        return []
    found = find(learner)
    if not found:
        return ["no prototype has met the criterion yet: no critical step found"]
    from rllib_conspec.report.prototypes import draw_prototypes

    picture = draw_prototypes(found, Path(directory) / PICTURE)
    return [*(str(f) for f in found), f"picture: {picture}"]
