"""The text of the batch scripts that are submitted for head and worker jobs.

They end by becoming the program of their job, `head_job.py` or `worker_job.py`. The batch script of
train jobs is not here but a file that users may change, cluster/train.sbatch.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rllib_conspec.slurm import jobs
from rllib_conspec.slurm.directory import ClusterDirectory
from rllib_conspec.slurm.options import SBATCH_OPTIONS

# Seconds between the warning and the time limit: enough to end an iteration and save.
WARNING_SECONDS = 120


def head_script(
    cluster: str,
    options: Mapping[str, Any],
    comment: str,
    directory: ClusterDirectory,
    temp_dir: str,
) -> str:
    """For a job that may be requeued and is warned before its time limit."""
    directives = ["--requeue", f"--signal=B:USR1@{WARNING_SECONDS}"]
    command = ["rllib_conspec.slurm.head_job", cluster, str(directory.path), temp_dir]
    return _script(cluster, options, comment, directory, directives, {}, command)


def worker_script(
    cluster: str,
    options: Mapping[str, Any],
    comment: str,
    directory: ClusterDirectory,
    temp_dir: str,
    node_type: str,
    resources: Mapping[str, float],
    labels: Mapping[str, str],
) -> str:
    """For a job that may vanish at any time: the autoscaler submits another one."""
    environment = {
        "RAY_NODE_TYPE_NAME": node_type,
        "RAY_OVERRIDE_RESOURCES": json.dumps(dict(resources)),
    }
    if labels:
        environment["RAY_OVERRIDE_LABELS"] = json.dumps(dict(labels))
    command = ["rllib_conspec.slurm.worker_job", cluster, str(directory.path), temp_dir]
    return _script(cluster, options, comment, directory, ["--no-requeue"], environment, command)


def _script(
    cluster: str,
    options: Mapping[str, Any],
    comment: str,
    directory: ClusterDirectory,
    directives: list[str],
    environment: Mapping[str, str],
    command: list[str],
) -> str:
    # `module` is a function that only a login shell is sure to have.
    lines = ["#!/bin/bash -l" if options.get("modules") else "#!/bin/bash"]
    lines += [
        f"#SBATCH --{line}"
        for line in (
            f"job-name={jobs.job_name(cluster)}",
            f"comment={comment}",
            f"output={directory.logs}/%j.log",
            "open-mode=append",
            "nodes=1",
            "ntasks=1",
        )
    ]
    lines += [
        f"#SBATCH --{option}={shlex.quote(str(options[name]))}"
        for name, option in SBATCH_OPTIONS.items()
        if name in options
    ]
    lines += [f"#SBATCH {line}" for line in [*directives, *options.get("sbatch", ())]]
    lines += prelude(options)
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    lines.append(f"exec python -m {shlex.join(command)}")
    return "\n".join(lines) + "\n"


def prelude(options: Mapping[str, Any]) -> list[str]:
    """Shell lines that make this package's Python and the user's settings available."""
    lines = [f"module load {shlex.quote(str(module))}" for module in options.get("modules", ())]
    if "venv" in options:
        activate = Path(os.path.expanduser(options["venv"])) / "bin" / "activate"
        lines.append(f"source {shlex.quote(str(activate))} || exit 1")
    else:
        # The Python that submits: it lies on the shared file system.
        lines.append(f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"')
    lines += [
        f"export {name}={shlex.quote(str(value))}" for name, value in options.get("env", {}).items()
    ]
    return [*lines, *options.get("setup", ())]
