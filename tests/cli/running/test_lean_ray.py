"""A local Ray with few processes. In one of its own: this one may have a Ray already."""

import json
import subprocess
import sys

import pytest

STARTED = """
import json, sys, time
from pathlib import Path

import ray
from ray._private.node import Node
from rllib_conspec.cli.running.lean_ray import only_what_is_used

logs = sys.argv[1] == "logs"
before = Node.start_monitor, Node.start_api_server, Node.start_log_monitor
with only_what_is_used(logs):
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=logs)
assert before == (Node.start_monitor, Node.start_api_server, Node.start_log_monitor)


@ray.remote
def six():
    print("from afar")
    return 6


assert ray.get(six.remote()) == 6
processes = ray._private.worker._global_node.all_processes
pids = [own.process.pid for kind in processes.values() for own in kind]
lines = [Path(f"/proc/{pid}/cmdline").read_text().split("\\0") for pid in pids]
words = {Path(word).name for line in lines for word in line}
services = ("raylet", "monitor.py", "dashboard.py", "log_monitor.py")
found = [name for name in services if name in words]
(raylet,) = [pid for pid, line in zip(pids, lines) if Path(line[0]).name == "raylet"]


def children():  # of the raylet, by what they call themselves
    stats = [p.read_text() for p in Path("/proc").glob("[0-9]*/stat")]
    own = [s.split()[0] for s in stats if int(s.rpartition(")")[2].split()[1]) == raylet]
    return {pid: Path("/proc", pid, "cmdline").read_text().replace("\\0", " ") for pid in own}


held = children()
assert not any("DashboardAgent" in line for line in held.values()), held
agents = [int(pid) for pid, line in held.items() if "no_agent.py" in line]
ray.shutdown()
for _ in range(100):
    left = [pid for pid in agents if Path("/proc", str(pid)).exists()]
    if not left:
        break
    time.sleep(0.1)
print(json.dumps([found, len(agents), left]))
"""


@pytest.mark.parametrize(
    ("logs", "started"), [("none", ["raylet"]), ("logs", ["raylet", "log_monitor.py"])]
)
def test_it_works_and_starts_what_is_used(tmp_path, logs, started):
    done = subprocess.run(
        [sys.executable, "-c", STARTED, logs], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[")))
    assert found == [started, 1, []]  # and what stands for the agent ends with the raylet
