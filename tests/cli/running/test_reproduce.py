import json
import signal
from pathlib import Path

import pytest

from rllib_conspec.cli.running.reproduce import Request
from rllib_conspec.reproduce import table

# A figure that is small enough to be made here, as the others are: two systems, two iterations for
# one and enough for the other to be interrupted.
TINY = """\
from rllib_conspec.reproduce.expectations import Better
from rllib_conspec.reproduce.figure import SMALL, Figure, Line, Run
from rllib_conspec.reproduce.table import FIGURES

NET = {
    "episodes_per_batch": 4,
    "episodes_per_minibatch": 2,
    "num_epochs": 1,
    "num_envs_per_env_runner": 4,
    "model_config": {"encoder_dim": 16, "core_dim": 16},
}
OURS = {"conspec": {"num_prototypes": 2, "encoder_dim": 16, "projection_dim": 16}}
LINES = (
    Line("1 key", "alone", Run("alone", "keys1_ppo", NET, stop={"training_iteration": 2})),
    Line("1 key", "with", Run("with", "keys1", NET | OURS, stop={"training_iteration": 40})),
)
HELPS = Better("1 key: with", "1 key: alone")
FIGURES["tiny"] = Figure("tiny", "Fig. 0", "one key", "It helps.", {SMALL: LINES}, (HELPS,))
"""
MAIN = (
    TINY
    + """
if __name__ == "__main__":
    from rllib_conspec.cli.main import main

    main(prog_name="rllib")
"""
)


@pytest.fixture
def tiny():
    """The figure, known to this process."""
    figures = dict(table.FIGURES)
    exec(TINY, {})
    yield
    table.FIGURES.clear()
    table.FIGURES.update(figures)


def rows(file):
    return [json.loads(line)["training_iteration"] for line in file.read_text().splitlines()]


def test_a_figure_is_interrupted_and_goes_on_without_running_anything_twice(
    command, rllib, tiny, tmp_path
):
    (tmp_path / "tiny.py").write_text(MAIN)
    flags = ["reproduce", "tiny", "--seeds", "1", "-o", "out", "--ray-num-cpus", "1"]
    first = command(*flags, module="tiny")
    first.wait_for("with  iteration 2/40")
    first.process.send_signal(signal.SIGINT)
    code, output = first.finish()
    assert code == 130, output
    assert (
        f"Resume with: {Request('tiny', seeds=1, out=Path('out'), ray_num_cpus=1).command}"
        in output
    )
    assert "1 key: with has 1 seed, fewer than 3" in output
    alone, ours = (
        tmp_path / f"out/runs/small/{n}/trial_0_seed=0/result.json" for n in ("alone", "with")
    )
    assert rows(alone) == [1, 2]
    before, reached = alone.read_bytes(), rows(ours)[-1]
    assert 2 <= reached < 40
    page = tmp_path / "out/tiny_small.md"
    assert "| 1 key: with | 1, 1 not ended |" in page.read_text()
    assert not (tmp_path / "out/curves/small/with_0.csv").exists()

    again = command(*flags, module="tiny")
    code, output = again.finish()
    assert code == 0, output
    assert "Checking with, then starting Ray …" in output
    assert alone.read_bytes() == before
    assert rows(ours) == list(range(1, 41))
    assert {path.name for path in (tmp_path / "out/runs/small").glob("*/")} == {"alone", "with"}
    text = page.read_text()
    assert "**The paper:** It helps." in text and "**Here: undecided.**" in text
    assert "![one key](tiny_small.png)" in text
    assert (tmp_path / "out/tiny_small.png").read_bytes().startswith(b"\x89PNG")
    steps = (tmp_path / "out/curves/small/with_0.csv").read_text().splitlines()
    assert steps[0] == "steps,success_rate_20" and len(steps) == 41

    # All is there: it is drawn again, and Ray is not started (the fixture would say so).
    page.unlink()
    done = rllib(*flags)
    assert done.exit_code == 0, done.output
    assert page.read_text() == text

    # A setting that has changed since, and a directory that something else has made.
    note = tmp_path / "out/runs/small/with.json"
    settings = json.loads(note.read_text())
    note.write_text(json.dumps(settings | {"stop": {"training_iteration": 7}}))
    more = [*flags[:2], "--seeds", "2", *flags[4:]]
    changed = rllib(*more)
    assert changed.exit_code == 2
    assert "with: was run with other settings (stop of keys1)" in changed.stderr
    note.unlink()
    foreign = rllib(*more)
    assert foreign.exit_code == 2 and "not made by rllib reproduce" in foreign.stderr


def test_the_list_names_every_figure_and_what_it_lacks(rllib):
    listing = rllib("reproduce", "list").stdout
    for figure in table.FIGURES.values():
        assert f"{figure.name}  {figure.where}: {figure.title}\n" in listing
    assert "not there yet: RIMs on Atari" in listing
    assert "benchmarks/invariance.py" in listing
    assert "about 26 min for 3 seeds on two cores" in listing


def test_a_dry_run_prints_commands_and_writes_nothing(rllib, tmp_path):
    done = rllib("reproduce", "stop_gradient", "--seeds", "2", "--dry-run", "-o", "there")
    assert done.exit_code == 0, done.output
    first, second = done.stdout.splitlines()
    assert first.startswith("rllib train -f ") and "keys4.yaml --experiment-name keys4 " in first
    assert "--storage-path there/runs/small" in first
    assert '"stop_gradient": true' in second and '"grid_search": [0, 1]' in second
    assert list(tmp_path.iterdir()) == []


def test_kept_curves_stand_for_runs_where_asked(rllib):
    flags = ["reproduce", "orangetree", "--dry-run", "--seeds", "6"]
    assert "orangetree_inprocess.yaml" in rllib(*flags).stdout
    known = rllib(*flags, "--known").stdout
    assert "# orangetree: nothing to run" in known
    assert '"grid_search": [5]' in known  # of PPO five seeds are kept


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["multykeys"],
            'no figure "multykeys". Did you mean "multikeys"? See: rllib reproduce list',
        ),
        (["control", "--scale", "paper"], 'control: has no scale "paper", only small.'),
        (["breakout"], "breakout: not there yet: RIMs on Atari, a Decision Transformer on Atari."),
        (["black_and_room"], "has a command of its own"),
        (["multikeys", "-o", "/proc/none"], "-o: /proc/none is not writable."),
        (["montezuma_shown"], "montezuma_shown: needs montezuma.rec. First: rllib record "),
    ],
)
def test_one_line_for_a_mistake(refused, words, text):
    assert text in refused("reproduce", *words)
