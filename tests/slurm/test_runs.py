import os
import sys
import time

import pytest
from real_slurm import wait_until

from rllib_conspec.slurm import runs
from rllib_conspec.slurm.runs import Driver, Run, Status

# A program that writes what it was called with, and ends when it is interrupted.
PROGRAM = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
print("called with", *sys.argv[1:], flush=True)
if "quick" in sys.argv:
    sys.exit(int(sys.argv[-1]) if sys.argv[-1].isdigit() else 0)
time.sleep(600)
"""


@pytest.fixture
def started(tmp_path):
    """Starts runs of PROGRAM; what still runs at the end is killed."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    made = []

    def start(*arguments):
        directory = tmp_path / "run"
        if not directory.exists():
            results = [str(tmp_path / "results" / "keys1")]
            command = [sys.executable, str(program)]
            resume = [*command, "-f", "a.yaml", "--resume"]
            Run([*command, *arguments], resume, str(tmp_path), results).save(directory)
        log = directory / "log"
        before = len(log.read_text().splitlines()) if log.exists() else 0
        made.append(Driver(directory, "7", os.environ, print))
        made[-1].lines_before = before
        return made[-1]

    yield start
    for driver in made:
        driver.kill()


def interrupted(driver):
    """Interrupt it once it runs; its status afterwards."""
    log, lines = driver.directory / "log", driver.lines_before
    wait_until(lambda: log.exists() and len(log.read_text().splitlines()) > lines, "it runs")
    driver.interrupt()
    return ended(driver)


def ended(driver):
    wait_until(lambda: not driver.runs(), "it has ended", every=0.05)
    return Status.of(driver.directory)


def saved_state(tmp_path, name="keys1"):
    directory = tmp_path / "results" / name
    directory.mkdir(parents=True)
    (directory / "experiment_state-1.json").write_text("{}")


def test_a_run_that_ends_is_finished_with_its_exit_code(started):
    status = ended(started("quick", "3"))
    assert (status.state, status.code, status.over) == ("finished", 3, True)


def test_an_interrupted_run_is_not_finished_and_is_resumed(started, tmp_path):
    driver = started("-f", "a.yaml", "--stop", "{}")
    saved_state(tmp_path)
    status = interrupted(driver)
    assert (status.state, status.over, status.job, status.fruitless) == (
        "interrupted",
        False,
        "7",
        0,
    )
    interrupted(started())
    log = (driver.directory / "log").read_text().splitlines()
    assert log == ["called with -f a.yaml --stop {}", "called with -f a.yaml --resume"]


def test_a_run_that_saved_nothing_starts_afresh(started, tmp_path):
    saved_state(tmp_path, "keys1_ppo")  # of another experiment
    driver = started("quick", "-f", "a.yaml", "--stop", "{}")
    ended(driver)
    Status("interrupted", job="7", first_start=time.time() - 10).save(driver.directory)
    ended(started())
    log = (driver.directory / "log").read_text().splitlines()
    assert log == ["called with quick -f a.yaml --stop {}"] * 2


def test_starts_that_save_nothing_are_counted(started):
    for number in range(1, runs.MAX_FRUITLESS + 1):
        driver = started("-f", "a.yaml")
        assert interrupted(driver).fruitless == number
    assert driver.hopeless
    driver.give_up("nothing was saved")
    assert Status.of(driver.directory).over
    assert (driver.directory / "log").read_text().endswith("rllib: nothing was saved\n")


def test_signals_to_the_supervisor_do_not_reach_the_program(started):
    driver = started("-f", "a.yaml")
    assert os.getpgid(driver._process.pid) != os.getpgid(0)
