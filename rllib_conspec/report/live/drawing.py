"""What the newest checkpoint of a trial found, as one JSON object on the standard output.

A process of its own does this: it imports torch, Ray and the run's environment, takes seconds, and
may break, while the page goes on.

python -m rllib_conspec.report.live.drawing TRIAL
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rllib_conspec.report.page.shown import ShownRow, show_trial
from rllib_conspec.report.trials import Trial

NICE = 5  # the run that is watched comes first


def draw(trial: str | Path) -> dict[str, Any]:
    """{checkpoint, lines, galleries: [{title, rows}], notes}; see `_row`."""
    shown = show_trial(Trial(Path(trial), {}, "", ""))
    lines, galleries = [], []
    for model in shown.models:
        galleries += [
            {"title": f"{model.name}: {name}", "rows": [_row(row) for row in rows]}
            for name, rows in model.galleries.items()
        ]
        # Those that speak of a row are not said twice: it shows the same.
        titles = [row.title for rows in model.galleries.values() for row in rows]
        lines += [line for line in model.lines if not line.startswith(tuple(titles or ["\0"]))]
    notes = [] if shown.silent or not shown.trouble else [shown.trouble]
    return {
        "checkpoint": shown.checkpoint,
        "lines": lines,
        "galleries": galleries,
        "notes": notes,
    }


def _row(row: ShownRow) -> dict[str, Any]:
    frames = [{"image": f.image, "caption": f.caption} for f in row.frames if f.image]
    return {"title": row.title, "facts": dict(row.facts), "words": row.words, "frames": frames}


def main(arguments: Sequence[str]) -> int:
    os.nice(NICE)
    # Whatever a user's modules print must not come between.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    told = draw(arguments[0])
    with answer:
        json.dump(told, answer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
