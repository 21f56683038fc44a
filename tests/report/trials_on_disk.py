"""Trials on disk as Tune leaves them, made without Tune."""

import json
from pathlib import Path

STEPS_PER_ROW = 1000


def row(i: int, **values) -> dict:
    """The i-th row of a result.json; a value may be given as `a__b` for `a: {b: …}`."""
    made = {
        "num_env_steps_sampled_lifetime": STEPS_PER_ROW * (i + 1),
        "time_total_s": 2.0 * (i + 1),
        "training_iteration": i + 1,
        "done": False,
    }
    for name, value in values.items():
        *above, last = name.split("__")
        place = made
        for key in above:
            place = place.setdefault(key, {})
        place[last] = value
    # Tune's own order: the configuration comes late, and what is of this session after it.
    return made | {"config": {"lr": 0.001, "seed": 1}, "time_since_restore": 1.0}


def write_trial(path: Path, rates, params=None, *, done=True, algorithm="", **more) -> Path:
    """A trial with these success rates; returns are ten times as high."""
    path.mkdir(parents=True)
    (path / "params.json").write_text(json.dumps(params or {"env": "e", "seed": 0}))
    rows = [
        row(i, env_runners__success_rate=r, env_runners__episode_return_mean=10 * r, **more)
        for i, r in enumerate(rates)
    ]
    if rows and done:
        rows[-1]["done"] = True
    (path / "result.json").write_text("".join(json.dumps(r) + "\n" for r in rows))
    if algorithm:
        state = json.dumps({"trial_data": [[json.dumps({"trainable_name": algorithm})]]})
        (path.parent / "experiment_state-2026.json").write_text(state)
    return path
