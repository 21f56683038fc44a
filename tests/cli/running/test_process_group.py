"""Who gets a signal that is sent to a process group."""

import subprocess
import sys

import pytest

# Prints whether a child started inside is in another group, and whether we are back in our own.
PROGRAM = """\
import os, subprocess
from rllib_conspec.cli.running.process_group import another_process_group

before = os.getpgrp()
with another_process_group():
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
print(os.getpgid(child.pid) != before, os.getpgrp() == before)
child.stdin.close()
child.wait()
"""


@pytest.mark.parametrize("leader", [True, False])
def test_children_are_elsewhere_and_we_are_back(leader):
    # A shell gives every command a group of its own; a script leaves it in the script's.
    options = {"process_group": 0} if leader else {}
    command = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    assert found.stdout.split() == ["True", "True"]


def test_a_session_leader_stays_where_it_is():
    command = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(
        command, capture_output=True, text=True, check=True, start_new_session=True
    )
    assert found.stdout.split() == ["False", "True"]
