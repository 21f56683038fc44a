"""Start and stop Ray on a node of a Slurm cluster, beside other users' and other clusters' Ray."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rllib_conspec.slurm.directory import write_private
from rllib_conspec.slurm.session_directory import SessionDirectory

# Ray's variable for the name of a node that its provider knows it by: here the id of the job.
INSTANCE = "RAY_CLOUD_INSTANCE_ID"
ATTEMPTS = 3
ANSWER_SECONDS = 120
# Inherited by every Ray worker process: one thread each, no niceness (Ray's default of 15 starves
# rollouts on shared nodes), and no hiding of GPUs from actors that asked for none.
DEFAULTS = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "RAY_worker_niceness": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_START_HOOK": "rllib_conspec.slurm.ray_node.without_client_server",
    # Ray would wait half a minute for its tasks when a node is told to go; Slurm does not.
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
    # Jobs wait in the queue for hours; Ray gives up a node that does not appear after one.
    "RAY_AUTOSCALER_RECONCILE_ALLOCATE_STATUS_TIMEOUT_S": str(14 * 24 * 3600),
}
# Ray's object store takes this part of the memory of its job, not of the whole machine.
STORE_SHARE = 0.3
_TERMINATE_SECONDS = 10
# Of each log of a Ray that died.
KEPT_BYTES = 200_000


class StartFailed(Exception):
    """Ray did not start; `str` is the reason."""


def authentication(token: Path) -> dict[str, str]:
    """Variables with which Ray demands and shows the token; the token itself stays in its file."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}


def node_address() -> str:
    """This node's address as the other nodes see it."""
    name = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    address = socket.gethostbyname(name)
    if address.startswith("127."):  # some systems give their own name to the loopback
        from ray._private.services import get_node_ip_address

        address = get_node_ip_address()
    return address


def without_client_server(parameters: Any, head: bool) -> None:
    """Called by `ray start`: no server for ray:// addresses.

    `ray start` cannot do without by a flag. It would be one more door for others, and when it is
    slow to start on a busy node it takes the whole head down with it.
    """
    parameters.ray_client_server_port = None


def free_ports(count: int) -> list[int]:
    """Ports that nobody on this node uses. Several clusters may share a node."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class RayNode:
    """A `ray start --block` process and its private temporary directory."""

    def __init__(self, temp_dir: str, cluster: str, environment: Mapping[str, str], log: Path):
        self.environment = {**DEFAULTS, **os.environ, **environment}
        self.environment.pop("RAY_ADDRESS", None)
        # Ray opens its directory to everybody, so it lies in one that is closed.
        self._session = SessionDirectory(temp_dir, cluster)
        self.temp_dir = self._session.path / "t"
        self.address = ""
        self._log = log
        self._process: subprocess.Popen | None = None

    def start_head(self, flags: Sequence[str], say: Callable[[str], None]) -> None:
        """Start a head and wait until it answers; at most ATTEMPTS times."""
        for attempt in range(1, ATTEMPTS + 1):
            gcs, dashboard = free_ports(2)
            self.address = f"{node_address()}:{gcs}"
            own = {
                "--port": gcs,
                "--dashboard-host": "127.0.0.1",
                "--dashboard-port": dashboard,
            }
            try:
                self._start(["--head", *flags], own)
                self._wait_for_answer()
                return
            except StartFailed as error:
                self.stop()
                if attempt == ATTEMPTS:
                    self.keep_logs()
                    raise StartFailed(f"Ray did not start in {ATTEMPTS} tries: {error}") from None
                say(f"try {attempt} of {ATTEMPTS} to start Ray failed: {error}")
                time.sleep(attempt)

    def start_worker(self, address: str) -> None:
        """Join the cluster whose head answers at `address`."""
        self.address = address
        self._start([f"--address={address}"], {})

    def _start(self, flags: Sequence[str], own: Mapping[str, object]) -> None:
        own = {
            **own,
            "--node-ip-address": node_address(),
            "--temp-dir": self.temp_dir,
            "--dashboard-agent-listen-port": 0,
            # Any free port, not a fixed range that a second Ray on this node would use too.
            "--min-worker-port": 0,
            "--max-worker-port": 0,
        }
        if memory := os.environ.get("SLURM_MEM_PER_NODE"):
            own["--object-store-memory"] = int(int(memory) * 2**20 * STORE_SHARE)
        if "GPU" not in self.environment.get("RAY_OVERRIDE_RESOURCES", ""):
            own["--num-gpus"] = 0
        given = {flag.partition("=")[0] for flag in flags}
        flags = [*flags, *(f"{name}={value}" for name, value in own.items() if name not in given)]
        with self._log.open("ab") as output:
            self._started_at = output.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *flags],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # signals to the job's program are for us to pass on
            )

    def _wait_for_answer(self) -> None:
        host, _, port = self.address.rpartition(":")
        end = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < end:
            if not self.alive:
                raise StartFailed(self.last_words())
            if reachable(host, int(port)) and "Ray runtime started" in self._output():
                return
            time.sleep(0.2)
        raise StartFailed(f"no answer after {ANSWER_SECONDS} s")

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _output(self) -> str:
        with self._log.open("rb") as stream:
            stream.seek(self._started_at)
            return stream.read().decode(errors="replace")

    def last_words(self) -> str:
        lines = [line.strip() for line in self._output().splitlines() if line.strip()]
        return " / ".join(lines[-2:]) or "it said nothing"

    def keep_logs(self) -> None:
        """Copy the ends of Ray's own logs to the shared file system: this node's copies go."""
        kept = self._log.with_suffix(".ray")
        for file in self.temp_dir.glob("session_2*/logs/*"):
            if file.is_file():
                kept.mkdir(mode=0o700, exist_ok=True)
                write_private(kept / file.name, _end_of(file))

    def stop(self) -> None:
        """End Ray on this node."""
        if self._process is not None and self.alive:
            self._process.terminate()  # `ray start --block` ends all that it started
            try:
                self._process.wait(_TERMINATE_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def close(self) -> None:
        """End Ray and remove its directory."""
        self.stop()
        self._session.remove()


def _end_of(file: Path) -> str:
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - KEPT_BYTES))
        return stream.read().decode(errors="replace")


def reachable(host: str, port: int, timeout: float = 3) -> bool:
    try:
        with socket.create_connection((host, port), timeout):
            return True
    except OSError:
        return False
