"""What stands on the page against what the files say, computed again another way."""

import html
import json
import re

import numpy as np
import pytest
import torch
from told import write_checkpoint
from trials_on_disk import row, write_trial

from rllib_conspec.errors import UserError
from rllib_conspec.report.page.build import write_report
from rllib_conspec.report.page.shown import FRAMES, to_address
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner


def lines_of(figure):
    return {t["name"]: t for t in figure["data"] if t["mode"] == "lines" and "name" in t}


def direct(results, key, time=False):
    """Running means of both seeds on the same axis: medians and quartiles, row by row."""
    curves = []
    for path in sorted(results.glob("trial_*/result.json")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        values = [r["env_runners"][key] for r in rows]
        # A success rate over fewer than 20 iterations counts the missing ones as failures.
        short = (lambda n: 20) if key == "success_rate" else (lambda n: n)
        mean = [sum(values[max(0, i - 19) : i + 1]) / short(min(i + 1, 20)) for i in range(40)]
        x = [r["time_total_s" if time else "num_env_steps_sampled_lifetime"] for r in rows]
        curves.append((x, mean))
    grid = np.linspace(0, curves[0][0][-1], 200)
    return grid, np.percentile([np.interp(grid, *c) for c in curves], [25, 50, 75], axis=0)


@pytest.mark.parametrize("against", ["steps", "time"])
@pytest.mark.parametrize(
    ("name", "key"), [("success", "success_rate"), ("return", "episode_return_mean")]
)
def test_curves_are_those_of_the_result_files(page, name, key, against):
    drawn = lines_of(page.figures[f"{name}-{against}"])
    assert len(drawn) == 2
    grid, (low, middle, high) = direct(page.results / "mine", key, against == "time")
    line = drawn["mine"]
    np.testing.assert_allclose(line["x"], grid, rtol=1e-4)
    np.testing.assert_allclose(line["y"], middle, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(line["customdata"], np.stack([low, high], 1), rtol=1e-4, atol=1e-9)


def galleries(text):
    """Titles and pictures of every gallery on the page."""
    for part in text.split('<article class="card gallery">')[1:]:
        own = part.partition("</article>")[0]
        yield re.search(r"<h4>(.*?)</h4>", own)[1], re.findall(r'<img src="(.*?)"', own)


def test_frames_are_those_with_the_highest_score(page):
    learner = ConSpecLearner.from_state(page.state)
    shown = dict(galleries(page.html))
    assert len(shown) == int(learner.met.sum()) == 2
    for title, pictures in shown.items():
        i = int(re.match(r"prototype (\d+)", title)[1])
        best = []
        for success in learner.memory.examples(i)[0]:
            with torch.no_grad():  # frame by frame: nothing is found once for several
                every = [
                    float(learner.model.scores(learner.model.encode(f[None]), torch.tensor([i])))
                    for f in torch.from_numpy(success.frames.copy())
                ]
            step = int(np.argmax(every))
            best.append((every[step], success.frames[step]))
        best.sort(key=lambda pair: -pair[0])
        assert pictures == [to_address(frame) for _, frame in best[:FRAMES]]


def test_every_row_has_its_facts_and_scores_of_both_kinds(page):
    assert page.html.count("update 1 of 1") == 2  # when it froze
    rows = [f for id, f in page.figures.items() if id.startswith("row-")]
    assert len(rows) == 2
    assert all(list(lines_of(f)) == ["successes (8)", "failures (8)"] for f in rows)


def test_one_episode_from_its_first_step_to_its_last(page):
    ids = [id for id in page.figures if id.startswith("timeline-")]
    assert len(ids) == 2  # a success and a failure
    names = [t["name"] for t in page.figures[ids[0]]["data"]]
    assert "event: key" in names and len(lines_of(page.figures[ids[0]])) == 2
    assert page.html.count('class="card timeline"') == 2


def test_tables_and_configuration(page):
    text = html.unescape(page.html)
    assert "Probability of improvement" in text and "1.00–1.00" in text
    assert re.search(r"Steps to 0\.9.*not reached", text, re.DOTALL)
    assert "env: mine" in text and "lr: 0.001" in text
    assert "conspec: gap" in text and {"metric-0-conspec-loss"} <= page.figures.keys()


def test_nothing_given_is_taken_for_markup(page):
    assert "<script><b>odd" not in page.html
    assert "&lt;script&gt;&lt;b&gt;odd" in page.html


def test_pictures_lie_beside_the_page(page):
    linked = re.findall(r'href="([\w.-]+\.png)"', page.html)
    assert len(linked) == 5 and all((page.path.parent / name).exists() for name in linked)


def test_a_run_that_only_began_crashed_or_has_other_models(tmp_path):
    write_trial(tmp_path / "r" / "trial_0", [], {"lr": 1})
    crashed = write_trial(tmp_path / "r" / "trial_1", [0.5], {"lr": 2}, done=False)
    (crashed / "error.txt").write_text("ValueError: lava\n")
    with (crashed / "result.json").open("a") as stream:
        stream.write('{"half')
    write_checkpoint(
        crashed / "checkpoint_000000", {"told:Told": {"lines": ["mine"], "galleries": {}}}
    )
    (crashed / "checkpoint_000001").mkdir()
    plain = write_trial(tmp_path / "r" / "trial_2", [0.5], {"lr": 3})
    write_checkpoint(plain / "checkpoint_000000", {})
    (tmp_path / "r" / "trial_3").mkdir()
    (tmp_path / "r" / "trial_3" / "result.json").write_text(json.dumps({"other": row(0)}) + "\n")
    written = write_report([str(tmp_path / "r")], tmp_path / "out", threshold=5)
    text = written.page.read_text()
    assert (written.trials, written.groups) == (4, 4)
    notes = "\n".join(written.notes)
    assert "r/trial_0: no iteration has ended" in notes and "cut short" in notes
    assert "r/trial_1 failed: ValueError: lava" in notes and "no column" in notes
    assert "<li>mine</li>" in text and "gallery" not in text.partition("</style>")[2]


def test_nothing_at_all_to_draw(tmp_path):
    write_trial(tmp_path / "r" / "trial_0", [])
    text = write_report([str(tmp_path)], tmp_path / "out").page.read_text()
    assert "there is nothing to draw" in text


def test_more_groups_than_can_be_told_apart(tmp_path):
    for i in range(30):
        write_trial(tmp_path / "r" / f"trial_{i}", [i / 30] * 2, {"lr": i, "seed": 0})
    text = write_report([str(tmp_path)], tmp_path / "out").page.read_text()
    drawn = json.loads(re.search(r'id="figures">(.*?)</script>', text)[1])["success-steps"]
    assert list(lines_of(drawn)) == [f"r lr={i}" for i in range(6, 30)]
    assert "Curves are of the 24 best groups" in text and text.count('<th scope="row">r lr=') == 30


def test_interquartile_means(page, tmp_path):
    results = [str(page.results / "mine")]
    text = write_report(results, tmp_path / "out", iqm=True).page.read_text()
    assert "Interquartile mean" in text


def test_a_place_that_cannot_be_written_to_is_named(page, tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UserError, match=r"file.*: cannot be written: "):
            write_report([str(page.results / "mine")], out)
