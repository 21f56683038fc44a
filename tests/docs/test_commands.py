"""The commands of the documentation: all are understood, and those that take under a minute are
run: here or, where they need a trained run or a cluster, by the test that is named.
"""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from rllib_conspec.cli.main import main
from rllib_conspec.tasks.orangetree import player

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "cluster" / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROGRAMS = ("rllib", "orangetree-player", "python", "make")
MAKES = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
RECORD = "rllib record keys1.rec -f tuned_examples/rivals/decision_transformer.yaml --all"
# Run here, in this process and an empty directory, with a part of what they say.
RUN = {
    "rllib example list": "keys2",
    "orangetree-player --play script --out episode.gif": "picked the orange",
    "orangetree-player --play random --variant black --seed 3": "steps",
    # The page has 2000: a minute on a loaded core.
    f"{RECORD} --episodes 20": "20 of 20 episodes",
}
# Where commands that begin so are run; None: they train, or are for hours or for a person.
ELSEWHERE = {
    "rllib found": "tests/cli/running/test_found.py",
    "rllib evaluate": "tests/cli/running/test_evaluate.py",
    "rllib record": "tests/cli/running/test_record.py",
    "rllib report": "tests/cli/running/test_report.py",
    "rllib watch": "tests/cli/test_watch.py",
    "rllib reproduce": "tests/cli/running/test_reproduce.py",
    "rllib train -f tuned_examples/paper/keys2.yaml --slurm": "tests/cli/running/test_slurm.py",
    "rllib train -f switchroom.yaml": "tests/docs/test_your_environment.py",
    "rllib train -f visits.yaml": "tests/algorithm/test_own_reward_model.py",
    "python -m rllib_conspec.report.curves": "tests/report/test_curves.py",
    "orangetree-player --mlagents-port": "tests/tasks/orangetree/test_player.py",
    "rllib train": None,
    "rllib example run": None,
    "python benchmarks/": None,
    "python docs/images/": None,
    "make": None,
}


def commands():
    """Command lines of all pages, without comments, each once; continued lines are joined."""
    found = {}
    for page in PAGES:
        for language, text in FENCE.findall(page.read_text()):
            if language not in ("", "sh", "bash"):
                continue
            for line in text.replace("\\\n", " ").splitlines():
                if line.split(" ")[0] in PROGRAMS and len(words(line)) > 1:
                    found.setdefault(shlex.join(words(line)), page.name)
    return found


def words(line):
    return shlex.split(line, comments=True)


COMMANDS = commands()


def test_they_are_found():
    assert {"rllib train -f tuned_examples/keys2.yaml", "make quickstart"} <= set(COMMANDS)
    assert len(COMMANDS) > 40


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_understood(line):
    program, *rest = words(line)
    if program == "rllib":
        understood_by_click(rest)
    elif program == "orangetree-player":
        player.parser().parse_args(rest)
    elif program == "make":
        assert rest[0] in MAKES
    else:
        module = rest[1].replace(".", "/") + ".py" if rest[0] == "-m" else rest[0]
        assert (ROOT / module).is_file()


def understood_by_click(rest):
    """Subcommand, flags and their values, without doing anything."""
    command, context = main, main.make_context("rllib", [], resilient_parsing=True)
    while hasattr(command, "commands"):
        name, *rest = rest
        command = command.commands[name]
        context = command.make_context(name, [*rest], parent=context, resilient_parsing=True)
    command.make_context(command.name, [*rest])


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_run_or_said_not_to_be(line):
    if line in RUN:
        return
    place = next(test for begins, test in ELSEWHERE.items() if line.startswith(begins))
    assert place is None or (ROOT / place).is_file()


@pytest.mark.parametrize("line", RUN)
def test_what_takes_under_a_minute_works(line, tmp_path, monkeypatch, capsys):
    several = re.sub("--episodes 20$", "--episodes 2000", line)
    assert several in COMMANDS
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tuned_examples").symlink_to(ROOT / "tuned_examples")
    program, *rest = words(line)
    if program == "rllib":
        done = CliRunner().invoke(main, rest)
        assert done.exit_code == 0, done.output
        said = done.output
    else:
        player.main(rest)
        said = capsys.readouterr().out
    assert RUN[line] in said
    written = [word for word in rest if word.endswith((".gif", ".rec"))]
    assert all((tmp_path / name).stat().st_size > 1000 for name in written)
