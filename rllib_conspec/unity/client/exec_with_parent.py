"""Become another program that the kernel kills when the parent dies.

Run as a file: ``python -I -S exec_with_parent.py PARENT_PID STATUS_FD PROGRAM [ARGUMENT …]``.
The death signal must be set in the new process. Doing that between fork and exec of the parent
would run Python in a copy of a process with many threads, which may hang. This small program can.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, status = int(sys.argv[1]), int(sys.argv[2])
    command = sys.argv[3:]
    os.set_inheritable(status, False)  # closed by a successful exec: tells that all is well
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before it could be watched
        os._exit(0)
    try:
        os.execv(command[0], command)
    except OSError as error:
        os.write(status, str(error.errno).encode())
        os._exit(126)


if __name__ == "__main__":
    main()
