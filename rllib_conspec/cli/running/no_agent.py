"""What stands where Ray's raylet wants an agent of the dashboard, and does nothing.

Run as a program, by `lean_ray.py`, with the agent's arguments. The raylet waits for the ports of
the agent's services in files of the session; -1 says that a service is not there. It ends with the
raylet, and the raylet would end with it. Only the standard library: it is to start at once.
"""

import os
import sys
import time
from pathlib import Path

SERVICES = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")


def argument(name: str) -> str:
    return next(a.split("=", 1)[1] for a in sys.argv if a.startswith(f"--{name}="))


def main() -> None:
    raylet = os.getppid()
    session, node = Path(argument("session-dir")), argument("node-id")
    for service in SERVICES:
        file = session / f"{service}_{node}"
        half = file.with_suffix(".part")  # nobody reads half a number
        half.write_text("-1")
        half.replace(file)
    while os.getppid() == raylet:
        time.sleep(1.0)


if __name__ == "__main__":
    main()
