"""The tests of `on_a_device.py`, in a process of their own: torch counts devices at its first
backward pass, and after that no device can be made up any more.
"""

import os
import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).with_name("on_a_device.py")


def test_in_a_process_of_their_own():
    kept = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=kept)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
