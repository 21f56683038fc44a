import subprocess
import sys
import threading

import pytest

from rllib_conspec.unity.threads import Worker


def test_jobs_are_done_in_order_and_failures_are_passed_on():
    worker, done = Worker("test-worker"), []
    futures = [worker.submit(done.append, i) for i in range(5)]
    assert worker.submit(lambda *, x: x, x=7).result(5) == 7
    assert done == [0, 1, 2, 3, 4]
    assert all(future.done() for future in futures)
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda: 1 / 0).result(5)
    (thread,) = [t for t in threading.enumerate() if t.name == "test-worker"]
    worker.shutdown()
    thread.join(5)
    assert not thread.is_alive()


def test_a_program_ends_although_a_job_does_not():
    code = "import time\nfrom rllib_conspec.unity.threads import Worker\n"
    code += "Worker('x').submit(time.sleep, 600)\nprint('end')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "end\n"
