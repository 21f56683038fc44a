"""Run Ray's commands on a node through `srun` instead of SSH."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import click
from ray.autoscaler._private.cli_logger import cli_logger
from ray.autoscaler.command_runner import CommandRunnerInterface

from rllib_conspec.slurm import jobs
from rllib_conspec.slurm.allocation import step
from rllib_conspec.slurm.directory import write_private

if TYPE_CHECKING:
    from rllib_conspec.slurm.node_provider import SlurmNodeProvider

# Where Ray's launcher puts the autoscaler's configuration. Two clusters of one user share a home.
BOOTSTRAP = "~/ray_bootstrap_config.yaml"
# Between two questions about a job that waits: soon at first, then seldom.
QUEUE_SECONDS = (0.5, 10.0)
# Ray's launcher turns this on by default; nodes of a cluster often have no way to the Internet.
_LEFT_OUT = ("RAY_USAGE_STATS_ENABLED",)


class NodeFailed(click.ClickException):
    """A command cannot be run on a node. With these attributes Ray shows no traceback."""

    def __init__(self, message: str, cmd: str, returncode: int = 1, stderr: str | None = None):
        super().__init__(message)
        self.cmd = cmd
        self.returncode = returncode
        self.stderr = message if stderr is None else stderr


class SlurmCommandRunner(CommandRunnerInterface):
    """Commands for one node of a cluster, which is a job."""

    def __init__(self, provider: SlurmNodeProvider, node_id: str):
        self._provider = provider
        self._directory = provider.directory
        self._job_id = node_id

    def run(
        self,
        cmd: str | None = None,
        timeout: int = 120,
        exit_on_fail: bool = False,
        port_forward: Any = None,
        with_output: bool = False,
        environment_variables: dict[str, Any] | None = None,
        run_env: str = "auto",
        ssh_options_override_ssh_key: str = "",
        shutdown_after_run: bool = False,
    ) -> str:
        if port_forward:
            raise click.ClickException(self._forwarding_hint(port_forward))
        if cmd and "sudo shutdown" in cmd:
            raise click.ClickException("--stop is for machines of one's own. Use `ray down`.")
        self._wait_until_running()
        if cmd is None or cmd.strip() == "ray stop":
            # `ray stop` ends every Ray of this user on the node, other clusters' too. What
            # belongs to this one ends with its job.
            return ""
        if "ray start" in cmd:
            self._order_start(cmd, environment_variables or {})
            return ""
        return self._step(cmd, environment_variables or {}, with_output)

    def _step(self, cmd: str, variables: dict[str, Any], with_output: bool) -> str:
        words = step(self._job_id)
        if sys.stdin.isatty() and sys.stdout.isatty() and not with_output:
            words.append("--pty")
        exports = "".join(f"export {name}={_shell(value)}; " for name, value in variables.items())
        environment = shlex.quote(str(self._directory.environment))
        prelude = f"cd; [ ! -e {environment} ] || . {environment}; "
        done = subprocess.run(
            [*words, "bash", "-c", prelude + exports + self._mapped(cmd)],
            env=jobs.clean_environment(),
            stdout=subprocess.PIPE if with_output else None,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            message = f"Command failed with exit code {done.returncode}: {cmd}"
            raise NodeFailed(message, cmd, done.returncode)
        return done.stdout if with_output else ""

    def _mapped(self, text: str) -> str:
        return text.replace(BOOTSTRAP, str(self._directory.bootstrap))

    # ---- waiting, and starting Ray

    def _wait_until_running(self) -> None:
        """Wait in the queue, and say where the job stands whenever that changes."""
        shown, (pause, longest) = "", QUEUE_SECONDS
        while True:
            job = self._provider.jobs(fresh=True).get(self._job_id)
            if job is None or not job.alive:
                end = self._provider.describe_end(self._job_id)
                # `ray up` prints `stderr`, then asks for its nodes and is told the end in full.
                told = end.splitlines()[0] if self._provider.will_tell(self._job_id) else None
                raise NodeFailed(end, "squeue", stderr=told)
            if job.running:
                return
            line = f"Job {job.id} is {job.state}: {jobs.place_in_queue(job)}"
            if line != shown:
                cli_logger.print("{}", line)
                shown = line
            time.sleep(pause)
            pause = min(1.5 * pause, longest)

    def _order_start(self, cmd: str, variables: dict[str, Any]) -> None:
        """Tell the head's program to start Ray; wait until Ray answers.

        Not as a step of our own: Slurm would end Ray together with the step.
        """
        job = self._provider.jobs(fresh=True)[self._job_id]
        if jobs.ADDRESS in job.tags:
            cli_logger.print("Ray answers at {}; it is not restarted.", job.tags[jobs.ADDRESS])
            return
        flags = shlex.split(self._mapped(cmd.partition("ray start")[2]))
        order = {
            "job": self._job_id,
            "flags": [flag for flag in flags if flag != "--head"],
            "environment": {
                name: _plain(value) for name, value in variables.items() if name not in _LEFT_OUT
            },
        }
        write_private(self._directory.start_order, json.dumps(order))
        while True:
            job = self._provider.jobs(fresh=True).get(self._job_id)
            if job is None or not job.alive:
                end = self._provider.last_word(self._job_id)
                raise NodeFailed(f"The head job could not start Ray. {end}", "ray start")
            if address := job.tags.get(jobs.ADDRESS):
                cli_logger.print("Ray answers at {} (job {} on {})", address, job.id, job.node)
                return
            time.sleep(1)

    def _forwarding_hint(self, ports: Any) -> str:
        job = self._provider.jobs().get(self._job_id)
        node = job.node if job else "NODE"
        pairs = [ports] if isinstance(ports, tuple) else ports
        flags = " ".join(f"-L {local}:localhost:{remote}" for local, remote in pairs)
        return f"Slurm forwards no ports. If your site allows it: ssh {flags} {node}"

    # ---- files

    def run_rsync_up(self, source: str, target: str, options: dict | None = None) -> None:
        self._wait_until_running()
        target = self._mapped(target)
        folder = os.path.isdir(source)
        exclude = [f"--exclude={one}" for one in (options or {}).get("rsync_exclude") or ()]
        where, what = (source, ".") if folder else os.path.split(os.path.abspath(source))
        pack = ["tar", "-C", where, *exclude, "-cf", "-", what]
        place = _home(target)
        if folder:
            unpack = f"mkdir -p {place} && tar -C {place} -xf -"
        else:
            unpack = f"umask 077; tar -xOf - > {place}"
        self._pipe(pack, [*step(self._job_id), "bash", "-c", unpack])

    def run_rsync_down(self, source: str, target: str, options: dict | None = None) -> None:
        self._wait_until_running()
        source = source.rstrip("/") if source != "/" else source
        pack = f'p={_home(source)}; tar -C "$(dirname "$p")" -cf - "$(basename "$p")"'
        place = target if os.path.isdir(target) else os.path.dirname(os.path.abspath(target))
        self._pipe(
            [*step(self._job_id), "bash", "-c", pack],
            ["tar", "-C", place, "--no-same-owner", "-xf", "-"],
        )
        arrived = os.path.join(place, os.path.basename(source))
        if not os.path.isdir(target) and os.path.abspath(target) != arrived:
            shutil.move(arrived, target)

    @staticmethod
    def _pipe(first: list[str], second: list[str]) -> None:
        environment = jobs.clean_environment()
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
        with subprocess.Popen(first, **pipes, env=environment) as sender:
            received = subprocess.run(second, stdin=sender.stdout, env=environment, check=False)
        if sender.returncode != 0 or received.returncode != 0:
            raise click.ClickException("Copying files to or from the node failed.")

    def remote_shell_command_str(self) -> str:
        return shlex.join([*step(self._job_id), "--pty", "bash"])


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _shell(value: Any) -> str:
    return shlex.quote(_plain(value))


def _home(path: str) -> str:
    """A path quoted for the shell, with its ~ still meaning the home directory there."""
    if path == "~" or path.startswith("~/"):
        return '"$HOME"' + shlex.quote(path[1:])
    return shlex.quote(path)
