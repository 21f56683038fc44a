"""Surroundings that tests rely on."""

import subprocess
import sys

CHILD = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"


def test_children_hear_ctrl_c():
    child = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True)
    assert child.stdout == "True\n"


def test_children_hear_ctrl_c_where_the_tests_run_in_the_background_of_a_script():
    one = f"{__file__}::{test_children_hear_ctrl_c.__name__}"
    words = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", one]
    done = subprocess.run(["env", "--ignore-signal=INT", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
