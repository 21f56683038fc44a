"""A cluster's directory on the shared file system, for its owner only: token, logs, runs."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import Any

from rllib_conspec.errors import UserError

DEFAULT_ROOT = "~/.rllib_conspec/slurm"


class ClusterDirectory:
    """`<root>/<cluster name>`, readable by nobody else."""

    def __init__(self, cluster: str, root: str | os.PathLike | None = None):
        self.path = Path(root or DEFAULT_ROOT).expanduser().absolute() / cluster
        self.token = self.path / "token"
        self.start_order = self.path / "start.json"  # how the head is to start Ray
        self.bootstrap = self.path / "bootstrap.yaml"  # what the autoscaler on the head reads
        self.environment = self.path / "environment.sh"  # of commands given with `ray exec`
        self.logs = self.path / "logs"
        self.runs = self.path / "runs"

    @classmethod
    def at(cls, path: str | os.PathLike) -> ClusterDirectory:
        path = Path(path)
        return cls(path.name, path.parent)

    def create(self) -> None:
        for directory in (self.path, self.logs, self.runs):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = directory.stat()
            if found.st_uid != os.getuid():
                raise UserError(f"{directory}: belongs to another user.")
            if stat.S_IMODE(found.st_mode) & 0o077:
                directory.chmod(0o700)

    def log(self, job_id: str) -> Path:
        return self.logs / f"{job_id}.log"

    def new_token(self) -> None:
        """A fresh token; whoever knew the old one is locked out."""
        self.token.unlink(missing_ok=True)
        write_private(self.token, secrets.token_hex(32))

    def forget(self) -> None:
        """Remove what a cluster that is down must not leave; logs and runs stay."""
        for file in (self.token, self.start_order, self.bootstrap, self.environment):
            file.unlink(missing_ok=True)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner may read, in one step."""
    partial = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(file)


def read_json(file: Path) -> Any:
    """The contents, or None when there is no such file yet."""
    try:
        return json.loads(file.read_text())
    except FileNotFoundError:
        return None
