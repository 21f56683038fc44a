"""A real Slurm on fake hosts: slurmctld on `login`, a slurmd on `n1` and one on `n2`.

Everything it writes lies in one temporary directory, which stands for the shared file system.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hosts

PROGRAMS = {"slurmctld": "slurm-wlm", "munged": "munge", "sshd": "openssh-server", "rsync": "rsync"}
PATH = f"/usr/local/sbin:/usr/sbin:/sbin:{os.environ['PATH']}"
NODES = ("n1", "n2")
FREEZER = Path("/sys/fs/cgroup/freezer")
# Far longer than anything takes on two busy cores: only what never happens takes as long.
WAIT_SECONDS = 300

# `cred_expire`: a requeued job waits this long before it starts again; Slurm's default is 120.
# Two cores claim to be four on every node. GPUs are other names of /dev/null.
SLURM_CONF = """
ClusterName=test
SlurmctldHost=login({login})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={base}/munge/socket,cred_expire=5
StateSaveLocation={base}/slurm/state
SlurmdSpoolDir={base}/slurm/spool-%n
SlurmctldPidFile={base}/slurm/slurmctld.pid
SlurmdPidFile={base}/slurm/slurmd-%n.pid
SlurmctldLogFile={base}/slurm/slurmctld.log
SlurmdLogFile={base}/slurm/slurmd-%n.log
ProctrackType={proctrack}
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
MpiDefault=none
ReturnToService=2
KillWait=30
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=100000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=n1 NodeAddr={n1} CPUs=4 RealMemory=8000 Gres=gpu:rtx8000:1
NodeName=n2 NodeAddr={n2} CPUs=4 RealMemory=8000
PartitionName=main Nodes=n1,n2 Default=YES PriorityTier=1 GraceTime=60 MaxTime=1-0
PartitionName=urgent Nodes=n1,n2 PriorityTier=10
"""
CGROUP_CONF = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"
GRES_CONF = "NodeName=n1 Name=gpu Type=rtx8000 File={base}/dev/nvidia0\n"


def missing() -> str | None:
    """Why Slurm cannot be started here, in a few words, or None. Installs packages if it may."""
    reason = hosts.missing()
    if reason:
        return reason
    absent = _absent()
    if not absent:
        return None
    if not _which("apt-get"):
        return f"needs {', '.join(absent)}, and there is no apt-get"
    with Path(tempfile.gettempdir(), "rllib_conspec-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process of these tests may be at it already
        _install(_absent())
    absent = _absent()
    return f"apt-get could not install {', '.join(absent)}" if absent else None


def _install(packages: list[str]) -> None:
    if not packages:
        return
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "capture_output": True}
    # The configuration of a machine that has some of it already stays as it is.
    keep = ["-o", "DPkg::Options::=--force-confold"]
    install = ["apt-get", "install", "-y", "--no-install-recommends", *keep, *packages]
    for command in (["apt-get", "update"], install):
        subprocess.run(command, check=False, **quiet)


def _absent() -> list[str]:
    """The packages of the programs that are not there."""
    return [package for program, package in PROGRAMS.items() if not _which(program)]


def _which(program: str) -> str | None:
    return shutil.which(program, path=PATH)


class RealSlurm:
    """Start with `with RealSlurm() as slurm:`; commands are given on `slurm.login`."""

    def __init__(self) -> None:
        # Not in /tmp: that is private to every fake host.
        self.base = Path(tempfile.mkdtemp(prefix="slurm-", dir="/var/tmp"))
        self.base.chmod(0o755)
        self.home = self.base / "home"
        # Slurm names its control groups by node and job: those of another one must not be found.
        self._freezer = FREEZER / f"rllib-{self.base.name}" if FREEZER.is_dir() else None

    def __enter__(self) -> RealSlurm:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        base = self.base
        for name in ("home", "munge", "dev", "slurm/state", "work"):
            (base / name).mkdir(parents=True)
        if self._freezer:
            self._freezer.mkdir()
        self.network = hosts.Network(base, NODES, self._freezer)
        self.login = self.network.login
        self.nodes = {name: self.network.hosts[name] for name in NODES}
        environment = {
            "PATH": PATH,
            "HOME": str(self.home),
            "SLURM_CONF": str(base / "slurm.conf"),
            "MUNGE_SOCKET": str(base / "munge" / "socket"),
        }
        for host in self.network.hosts.values():
            host.environment |= environment
        self._configure()
        key = base / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self._daemon(
            self.login,
            *("munged", "--foreground", "--force", f"--key-file={key}"),
            *(f"--{what}={base}/munge/{name}" for what, name in MUNGE_FILES.items()),
        )
        self._until(lambda: (base / "munge" / "socket").exists(), "munged answers")
        self._daemon(self.login, "slurmctld", "-D", "-c")
        for name, host in self.nodes.items():
            self._daemon(host, "slurmd", "-D", "-N", name)
        self._until(self._nodes_are_idle, "both nodes are idle")

    def _configure(self) -> None:
        base = self.base
        proctrack = "proctrack/cgroup" if self._freezer else "proctrack/linuxproc"
        addresses = {name: host.address for name, host in self.network.hosts.items()}
        texts = {"slurm.conf": SLURM_CONF, "gres.conf": GRES_CONF, "cgroup.conf": CGROUP_CONF}
        for name, text in texts.items():
            (base / name).write_text(text.format(base=base, proctrack=proctrack, **addresses))
        os.mknod(base / "dev" / "nvidia0", 0o666 | 0o020000, os.makedev(1, 3))

    def _daemon(self, host: hosts.Host, *words: str) -> None:
        with (self.base / f"{host.name}-{Path(words[0]).name}.out").open("w") as output:
            host.start(*words, stdout=output, stderr=subprocess.STDOUT)

    def _nodes_are_idle(self) -> bool:
        done = self.login.run("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T", check=False)
        return sorted(done.stdout.split("\n")) == ["", *(f"{name} idle" for name in NODES)]

    def _until(self, condition, what: str) -> None:
        try:
            wait_until(condition, what)
        except AssertionError as error:
            raise RuntimeError(f"{error}\n{self.logs()}") from None

    def logs(self) -> str:
        """The ends of the daemons' logs."""
        files = [*self.base.glob("*.out"), *self.base.glob("slurm/*.log")]
        return "\n".join(f"== {file.name}\n{file.read_text()[-2000:]}" for file in files)

    def squeue(self, *words: str, format: str = "%i %T %j") -> list[str]:
        return self.login.run("squeue", "-h", "-o", format, *words).stdout.splitlines()

    def python(self, code: str, **variables: object) -> str:
        """Run a piece of Python on the login host, with these variables; what it prints."""
        given = "".join(f"{name} = {value!r}\n" for name, value in variables.items())
        return self.login.run(sys.executable, "-c", given + code).stdout

    def submit(self, script: str, *options: str) -> str:
        """Submit a batch script; the id of its job."""
        options = (
            "--parsable",
            f"--output={self.base}/work/%j.log",
            "--open-mode=append",
            *options,
        )
        return self.login.run("sbatch", *options, input=script).stdout.strip()

    def output(self, job_id: str) -> str:
        log = self.base / "work" / f"{job_id}.log"
        return log.read_text() if log.exists() else ""

    def stop(self) -> None:
        if hasattr(self, "network"):
            self.network.stop()
        if self._freezer:
            for directory in sorted(self._freezer.glob("**/"), reverse=True):
                with contextlib.suppress(OSError):
                    directory.rmdir()
        shutil.rmtree(self.base, ignore_errors=True)


MUNGE_FILES = {
    "socket": "socket",
    "pid-file": "pid",
    "log-file": "log",
    "seed-file": "seed",
}


def wait_until(condition, what: str, timeout: float = WAIT_SECONDS, every: float = 0.2):
    """Wait for a true value and return it."""
    end = time.monotonic() + timeout
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not after {timeout:g} s: {what}")
        time.sleep(every)
    return found
