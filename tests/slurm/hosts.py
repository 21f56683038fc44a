"""Fake hosts on one machine: namespaces with a name, an address and a /tmp of their own.

A host is the first process of a PID namespace. When it is killed the kernel kills everything that
was started on the host and removes its network, so nothing can be left behind. It dies with the
test run.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
from pathlib import Path

TOOLS = ("unshare", "nsenter", "ip", "mount")
UNSHARE = ("unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork")
# Writes below these directories stay on the host; what lies there already can be read.
PRIVATE = ("/tmp", "/root", "/run")
SETUP = """
set -e
hostname "$NAME"
mount --bind "$HOSTS" /etc/hosts
mount -t tmpfs tmpfs /dev/shm
for dir in $PRIVATE_DIRECTORIES; do
  mkdir -p "$OWN$dir/upper" "$OWN$dir/work"
  chmod --reference="$dir" "$OWN$dir/upper"
  mount -t overlay overlay -o "lowerdir=$dir,upperdir=$OWN$dir/upper,workdir=$OWN$dir/work" "$dir"
done
if [ -n "$FREEZER" ]; then mount --bind "$FREEZER" /sys/fs/cgroup/freezer; fi
mkdir -p /tmp/ray
mount -t tmpfs tmpfs /tmp/ray
ip link set lo up
echo ready
# bash, because it also buries processes whose parents have died.
while true; do sleep 1000 & wait; done
"""


def missing() -> str | None:
    """Why fake hosts cannot be made here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    if absent:
        return f"needs {', '.join(absent)}"
    if subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode != 0:
        return "may not make namespaces"
    return None


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Host:
    """One fake host; `run` and `start` execute commands on it."""

    def __init__(self, name: str, address: str, base: Path, freezer: Path | None):
        self.name = name
        self.address = address
        self.environment: dict[str, str] = {}
        self._holder = subprocess.Popen(
            [*UNSHARE, "--kill-child=KILL", "--mount-proc", "bash", "-c", SETUP],
            env={
                **os.environ,
                "NAME": name,
                "HOSTS": str(base / "hosts"),
                "OWN": str(base / "own" / name),
                "PRIVATE_DIRECTORIES": " ".join(PRIVATE),
                "FREEZER": str(freezer or ""),
            },
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=_die_with_parent,
        )
        if self._holder.stdout.readline().strip() != "ready":
            raise RuntimeError(f"the fake host {name} could not be set up")
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        self.pid = int(children.read_text().split()[0])

    def command(self, *words: str | os.PathLike, cwd: str | os.PathLike = "/") -> list[str]:
        enter = ["nsenter", f"--target={self.pid}", "--net", "--mount", "--pid", "--uts", "--ipc"]
        return [*enter, f"--wdns={cwd}", "--", *map(str, words)]

    def start(
        self, *words: str | os.PathLike, env: dict | None = None, **options
    ) -> subprocess.Popen:
        command = self.command(*words, cwd=options.pop("cwd", "/"))
        environment = {**os.environ, **self.environment, **(env or {})}
        return subprocess.Popen(command, env=environment, text=True, **options)

    def run(
        self, *words: str | os.PathLike, env: dict | None = None, timeout: float = 600, **options
    ) -> subprocess.CompletedProcess:
        """Run to the end; stdout and stderr are captured, and a failure shows them."""
        check = options.pop("check", True)
        if "input" not in options:
            options["stdin"] = subprocess.DEVNULL
        command = self.command(*words, cwd=options.pop("cwd", "/"))
        environment = {**os.environ, **self.environment, **(env or {})}
        done = subprocess.run(
            command, env=environment, text=True, capture_output=True, timeout=timeout, **options
        )
        if check and done.returncode != 0:
            shown = " ".join(map(str, words))
            raise AssertionError(f"{shown}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def processes(self, text: str) -> list[str]:
        """Command lines on this host that contain `text`."""
        # ww: not cut at some width.
        lines = self.run("ps", "-eww", "-o", "args=").stdout.splitlines()
        return [line for line in lines if text in line and not line.startswith("ps ")]

    def stop(self) -> None:
        self._holder.kill()
        self._holder.wait()


class Network:
    """A login host with a bridge, and hosts connected to it; no way out to any other network.

    Control groups of processes are made below `freezer`, a directory in that hierarchy.
    """

    PREFIX = "10.77.0"

    def __init__(self, base: Path, names: tuple[str, ...], freezer: Path | None = None):
        self.base = base
        self.hosts: dict[str, Host] = {}
        addresses = {"login": f"{self.PREFIX}.1"}
        addresses |= {name: f"{self.PREFIX}.{11 + n}" for n, name in enumerate(names)}
        lines = ["127.0.0.1 localhost", *(f"{ip} {name}" for name, ip in addresses.items())]
        (base / "hosts").write_text("\n".join(lines) + "\n")
        try:
            self.login = self.hosts["login"] = Host("login", addresses["login"], base, freezer)
            self.login.run("ip", "link", "add", "br0", "type", "bridge")
            self.login.run("ip", "addr", "add", f"{self.login.address}/24", "dev", "br0")
            self.login.run("ip", "link", "set", "br0", "up")
            for name in names:
                self._connect(Host(name, addresses[name], base, freezer))
        except BaseException:
            self.stop()
            raise

    def _connect(self, host: Host) -> None:
        self.hosts[host.name] = host
        pair = ("type", "veth", "peer", "name", "eth0", "netns", str(host.pid))
        # Not on the login host: its PID namespace does not know the other's process.
        login_net = ["nsenter", f"--target={self.login.pid}", "--net", "--"]
        for words in (
            ["ip", "link", "add", host.name, *pair],
            ["ip", "link", "set", host.name, "master", "br0", "up"],
        ):
            subprocess.run([*login_net, *words], check=True)
        host.run("ip", "addr", "add", f"{host.address}/24", "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")
        # Programs find their own address by looking where a packet to the world would leave.
        host.run("ip", "route", "add", "default", "via", self.login.address)

    def stop(self) -> None:
        for host in self.hosts.values():
            host.stop()
