"""Ray clusters on the fake hosts, from the files that we ship, and training runs on them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml
from real_slurm import RealSlurm, wait_until

from rllib_conspec.slurm import jobs
from rllib_conspec.slurm.directory import ClusterDirectory

ROOT = Path(__file__).resolve().parents[2]
PYTHON = sys.executable
KEYS1 = ROOT / "tuned_examples" / "keys1.yaml"
# keys1.yaml by the paper, with networks of a few units, learning from the first batch on. A
# prototype meets so low a criterion within a few iterations: there are exemplars to restore.
TINY = {
    "preset": "paper",
    "success": "top_k",
    "num_env_runners": 2,
    "num_envs_per_env_runner": 2,
    "episodes_per_batch": 4,
    "episodes_per_minibatch": 2,
    "num_epochs": 1,
    "model_config": {"encoder_dim": 8, "core_dim": 8},
    "conspec": {
        "num_prototypes": 2,
        "encoder_dim": 8,
        "projection_dim": 8,
        "memory_size": 8,
        "memory_batch": 4,
        "min_successes": 1,
        "threshold": 0.01,
        "freeze_after": 1,
    },
    "num_gpus_per_learner": 0,  # the GPUs of the fake hosts compute nothing
}
RAY_SECONDS = 600


class Cluster:
    """A cluster file of ours with the partition and sizes of the fake site."""

    def __init__(self, slurm: RealSlurm, name: str, head: dict, worker: dict, **settings):
        self.slurm = slurm
        self.name = name
        config = yaml.safe_load((ROOT / "cluster" / "slurm_cpu.yaml").read_text())
        config["cluster_name"] = name
        for kind, options in (("learner", head), ("rollouts", worker)):
            node = {"partition": "main", "mem": "1500M", **options}
            node["env"] = {"AUTOSCALER_UPDATE_INTERVAL_S": "1", **options.get("env", {})}
            config["available_node_types"][kind]["node_config"] = node
        workers = settings.pop("min_workers", 0)
        config["available_node_types"]["rollouts"]["min_workers"] = workers
        config.update(settings)
        self.file = slurm.base / "work" / f"{name}.yaml"
        self.file.write_text(yaml.safe_dump(config))
        self._up = ("up", "--yes", "--no-config-cache", self.file)
        self.directory = ClusterDirectory(name, slurm.home / ".rllib_conspec" / "slurm")

    def ray(self, *words: str, check: bool = True, timeout: float = RAY_SECONDS):
        """`ray WORDS` on the login host."""
        command = (PYTHON, "-m", "ray.scripts.scripts", *words)
        done = self.slurm.login.run(*command, cwd=self.file.parent, check=False, timeout=timeout)
        if check and done.returncode != 0:
            output = done.stdout + done.stderr + self.logs()[-6000:]
            raise AssertionError(f"ray {words[0]}: exit code {done.returncode}\n{output}")
        return done

    def up(self, check: bool = True):
        return self.ray(*self._up, check=check)

    def start_up(self, output) -> subprocess.Popen:
        """`ray up`, which goes on by itself and writes to `output`."""
        command = (PYTHON, "-m", "ray.scripts.scripts", *self._up)
        folder, error = self.file.parent, subprocess.STDOUT
        return self.slurm.login.start(*command, cwd=folder, stdout=output, stderr=error)

    def down(self):
        return self.ray("down", "--yes", self.file)

    def exec(self, command: str) -> str:
        return self.ray("exec", "--no-config-cache", self.file, command).stdout

    def jobs(self) -> dict[str, jobs.Job]:
        lines = self.slurm.squeue(f"--name=ray-{self.name}", format="|".join(jobs._FIELDS))
        found = [jobs._parse(line) for line in lines]
        return {job.id: job for job in found}

    @property
    def head(self) -> jobs.Job:
        return next(job for job in self.jobs().values() if job.is_head)

    def workers(self) -> list[jobs.Job]:
        return [job for job in self.jobs().values() if not job.is_head and job.alive]

    def log(self, job_id: str) -> str:
        return self.directory.log(job_id).read_text()

    def logs(self) -> str:
        return "\n".join(f"== {file}\n{file.read_text()}" for file in self.directory.logs.iterdir())


class Training:
    """`rllib train … --slurm` on the login host, and its output so far."""

    # As in the background of a script, where shells have SIGINT ignored.
    BEFORE = ("env", "--ignore-signal=INT")

    def __init__(self, cluster: Cluster, *flags: str):
        self.cluster = cluster
        self.results = cluster.slurm.base / "work" / f"results-{cluster.name}"
        self._log = cluster.slurm.base / "work" / f"training-{cluster.name}.log"
        with self._log.open("w") as output:
            self.process = cluster.slurm.login.start(
                *(*self.BEFORE, PYTHON, "-m", "rllib_conspec.cli.main", "train", "-f", KEYS1),
                *("--slurm", cluster.file, "--storage-path", self.results, *flags),
                cwd=self._log.parent,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self._log.read_text()

    def iterations(self, after: str = "", before: str = "") -> list[int]:
        """Numbers of the iterations shown, after or before the last `after` or `before`."""
        shown = self.output
        if after:
            shown = shown[shown.rfind(after) :] if after in shown else ""
        if before:
            shown = shown[: shown.rfind(before)]
        return [int(number) for number in re.findall(r"  iteration (\d+)/", shown)]

    def wait_for(self, condition, what: str):
        def check():
            assert self.process.poll() is None, f"ended:\n{self.output}"
            return condition()

        try:
            return wait_until(check, what, every=0.1)
        except AssertionError as error:
            logs = self.cluster.logs()
            raise AssertionError(f"{error}\n{self.output}\n{logs[-6000:]}") from None

    def wait_for_iterations(self, count: int, after: str = "") -> float:
        """Until so many more iterations were shown; the seconds that took."""
        start, before = time.monotonic(), len(self.iterations(after))
        self.wait_for(lambda: len(self.iterations(after)) >= before + count, f"{count} iterations")
        return time.monotonic() - start

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        child = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        os.kill(int(child), signal.SIGINT)  # not nsenter, which would hide the exit code
        return self.process.wait(RAY_SECONDS)

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
