import os
import signal
import subprocess
import sys

import pytest
from ray.tune.schedulers import FIFOScheduler

from rllib_conspec.cli.running import interrupt as interrupt_module
from rllib_conspec.cli.running.interrupt import Interrupt, handling, pausing


def test_a_signal_is_remembered_and_the_handlers_are_put_back():
    said = []
    before = signal.getsignal(signal.SIGTERM)
    interrupt = Interrupt()
    with handling(interrupt.handle):
        interrupt.announce(said.append)
        assert not interrupt.requested and not said
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupt.requested
        interrupt.announce(said.append)
        interrupt.announce(said.append)
        assert len(said) == 1 and "Press Ctrl-C again" in said[0]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_request_quits_at_once_but_not_the_second_signal_of_one(monkeypatch):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    interrupt = Interrupt()
    interrupt.handle(signal.SIGTERM, None)
    interrupt.handle(signal.SIGTERM, None)
    assert not ended
    monkeypatch.setattr(interrupt_module, "SAME_REQUEST_S", 0.0)
    interrupt.handle(signal.SIGINT, None)
    assert ended == [130]


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_signals_that_were_ignored_are_heard(number):
    """As in the background of a script, where shells ignore SIGINT."""
    program = (
        "import os, signal\n"
        "from rllib_conspec.cli.running.interrupt import handling\n"
        f"assert signal.getsignal(signal.{number}) is signal.SIG_IGN\n"
        "with handling(lambda *_: print('heard')):\n"
        f"    os.kill(os.getpid(), signal.{number})\n"
        f"assert signal.getsignal(signal.{number}) is signal.SIG_IGN\n"
    )
    found = subprocess.run(
        ["env", f"--ignore-signal={number.removeprefix('SIG')}", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "heard\n"


def test_after_an_interrupt_trials_are_paused_and_none_is_started():
    class Trial:
        status = "PENDING"

    class Controller:
        def get_trials(self):
            return [Trial]

    interrupt = Interrupt()
    scheduler = pausing(FIFOScheduler(), interrupt)
    assert scheduler.on_trial_result(Controller(), Trial, {}) == scheduler.CONTINUE
    assert scheduler.choose_trial_to_run(Controller()) is Trial
    interrupt.handle(signal.SIGINT, None)
    assert scheduler.on_trial_result(Controller(), Trial, {}) == scheduler.PAUSE
    assert scheduler.choose_trial_to_run(Controller()) is None
