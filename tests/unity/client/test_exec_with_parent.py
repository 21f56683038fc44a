import os
import subprocess
import sys
from pathlib import Path

from rllib_conspec.unity.client import exec_with_parent

PROGRAM = Path(exec_with_parent.__file__)


def run(parent, *command):
    """Exit code, output, and what the program said about a failed start."""
    reader, writer = os.pipe()
    done = subprocess.run(
        [sys.executable, "-I", "-S", PROGRAM, str(parent), str(writer), *command],
        pass_fds=(writer,),
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(writer)
    said = os.read(reader, 16)
    os.close(reader)
    return done.returncode, done.stdout, said


def test_it_becomes_the_program():
    script = "import os; print(open('/proc/self/comm').read().strip(), os.listdir('/proc/self/fd'))"
    code, printed, said = run(os.getpid(), sys.executable, "-c", script)
    assert (code, said) == (0, b"")
    assert "python" in printed
    assert len(eval(printed.split(" ", 1)[1])) <= 4  # the three usual files and the directory


def test_it_tells_why_a_program_cannot_be_run(tmp_path):
    empty = tmp_path / "empty"
    empty.write_bytes(b"\x7fELF nonsense")
    empty.chmod(0o755)
    code, _, said = run(os.getpid(), str(empty))
    assert code == 126
    assert os.strerror(int(said)) == "Exec format error"


def test_it_does_nothing_for_a_parent_that_is_gone():
    assert run(1 << 22, sys.executable, "-c", "print('started')") == (0, "", b"")
