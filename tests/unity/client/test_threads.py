import subprocess
import sys

import pytest

from rllib_conspec.unity.client.threads import LastingThread


def test_jobs_are_done_in_order_and_failures_are_passed_on():
    thread, done = LastingThread("test"), []
    futures = [thread.submit(done.append, i) for i in range(5)]
    assert thread.submit(max, 3, 7).result(5) == 7
    assert done == [0, 1, 2, 3, 4]
    assert all(future.done() for future in futures)
    with pytest.raises(ZeroDivisionError):
        thread.submit(lambda: 1 / 0).result(5)


def test_it_works_until_the_very_end_and_holds_nothing_up():
    code = """
import atexit, time
from rllib_conspec.unity.client.threads import LastingThread
thread = LastingThread("test")
atexit.register(lambda: print(thread.submit(max, 3, 7).result(), flush=True))
LastingThread("endless").submit(time.sleep, 600)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "7\n"
