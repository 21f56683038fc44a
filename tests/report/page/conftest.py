"""One page for the tests of this folder: two groups of two seeds, and one real checkpoint."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from told import conspec_state, write_checkpoint
from trials_on_disk import write_trial

from rllib_conspec.report.page.build import write_report

MET = (0, 1)  # prototypes that pay
ODD = "<script><b>odd"  # a label that would break a page that does not escape it


@dataclass
class Page:
    results: Path
    path: Path
    html: str
    figures: dict
    state: dict  # of the reward model in the checkpoint


def write_page(results: Path, out: Path, state: dict, **options) -> Page:
    written = write_report([str(results / "mine"), f"{ODD}={results / 'other'}"], out, **options)
    html = written.page.read_text()
    figures = re.search(r'<script type="application/json" id="figures">(.*?)</script>', html)[1]
    return Page(results, written.page, html, json.loads(figures), state)


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    results = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    for seed in range(2):
        for name, height in (("mine", 1.0), ("other", 0.3)):
            rates = np.clip(np.linspace(0, height, 40) + 0.1 * rng.random(40), 0, 1)
            params = {"env": name, "seed": seed}
            more = {"conspec__loss": 1.0, "conspec__gap": {"0": 0.5, "1": 0.6}}
            path = results / name / f"trial_{seed}"
            write_trial(path, rates, params, algorithm=name, **more)
    state = conspec_state(met=MET, events=((3, "key"),), episodes=16)
    write_checkpoint(results / "mine" / "trial_1" / "checkpoint_000001", {"conspec": state})
    return write_page(results, results / "out", state)
