import os
import signal

from ray.tune.schedulers import FIFOScheduler

from rllib_conspec.cli.interrupt import Interrupt, pausing


def test_a_signal_is_remembered_and_the_handlers_are_put_back():
    said = []
    before = signal.getsignal(signal.SIGTERM)
    with Interrupt() as interrupt:
        interrupt.announce(said.append)
        assert not interrupt.requested and not said
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupt.requested
        interrupt.announce(said.append)
        interrupt.announce(said.append)
        assert len(said) == 1 and "Press Ctrl-C again" in said[0]
    assert signal.getsignal(signal.SIGTERM) is before


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
    interrupt.requested = True
    assert scheduler.on_trial_result(Controller(), Trial, {}) == scheduler.PAUSE
    assert scheduler.choose_trial_to_run(Controller()) is None
