"""Ray's view of a Slurm cluster: a node is a job.

    provider:
      type: external
      module: rllib_conspec.slurm.node_provider.SlurmNodeProvider

Used by `ray up`, `down`, `exec`, … on the login node, and by the autoscaler on the head.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from typing import Any

import click
from ray.autoscaler.node_launch_exception import NodeLaunchException
from ray.autoscaler.node_provider import NodeProvider

from rllib_conspec.errors import OptionError
from rllib_conspec.slurm import jobs, options
from rllib_conspec.slurm.command_runner import NodeFailed, SlurmCommandRunner
from rllib_conspec.slurm.directory import ClusterDirectory
from rllib_conspec.slurm.ray_node import INSTANCE
from rllib_conspec.slurm.sbatch import head_script, worker_script

# Ray asks about nodes one by one; Slurm is asked about all of them, and not more often than this.
CACHE_SECONDS = 1.0
LOG_LINES = 15
# Ray adds two empty fields to every external provider's configuration and warns about them each
# time it reads it: on the head, every few seconds.
logging.getLogger("ray.autoscaler._private.util").addFilter(
    lambda record: "Dropping the empty legacy field" not in record.getMessage()
)


class SlurmNodeProvider(NodeProvider):
    """All methods may be called from several threads."""

    def __init__(self, provider_config: dict[str, Any], cluster_name: str):
        super().__init__(provider_config, cluster_name)
        self.directory = ClusterDirectory(cluster_name, provider_config.get("state_dir"))
        self.temp_dir = provider_config.get("temp_dir", "/tmp")
        self._lock = threading.RLock()
        self._jobs: dict[str, jobs.Job] = {}
        self._asked = 0.0
        self._own_head: str | None = None

    # ---- which nodes there are

    def jobs(self, fresh: bool = False) -> dict[str, jobs.Job]:
        """All jobs of the cluster, those that are just ending included."""
        with self._lock:
            if fresh or time.monotonic() - self._asked > CACHE_SECONDS:
                self._jobs = jobs.find(self.cluster_name)
                self._asked = time.monotonic()
            return self._jobs

    def non_terminated_nodes(self, tag_filters: dict[str, str]) -> list[str]:
        found = self.jobs(fresh=True)
        if self._own_head is not None and self._own_head not in found:
            # It ended before `ray up` saw it, which would look for it for a minute and not say why.
            raise click.ClickException(self.last_word(self._own_head))
        return [job.id for job in found.values() if job.alive and _fits(job, tag_filters)]

    def nodes_for_teardown(self, tag_filters: dict[str, str]) -> list[str]:
        # `ray down` asks until nothing is left: a job that is ending still holds its node.
        return [job.id for job in self.jobs(fresh=True).values() if _fits(job, tag_filters)]

    def is_running(self, node_id: str) -> bool:
        job = self.jobs().get(node_id)
        return job is not None and job.running

    def is_terminated(self, node_id: str) -> bool:
        job = self.jobs().get(node_id)
        over = job is None or not job.alive
        if over and node_id == self._own_head:
            # `ray up` asks this while it waits, and would say no more than that the node is gone.
            raise NodeFailed(self.last_word(node_id), "sbatch")
        return over

    def will_tell(self, node_id: str) -> bool:
        """Whether how this node ended is still to be shown: that of the head of `ray up`."""
        return node_id == self._own_head

    def last_word(self, node_id: str) -> str:
        """The same as `describe_end`; it will be shown, and need not be said again."""
        self._own_head = None
        return self.describe_end(node_id)

    def describe_end(self, node_id: str) -> str:
        """One line and the last ones of its log about a job that is over."""
        log = self.directory.log(node_id)
        try:
            lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        except OSError:
            return f"Job {node_id} has ended."
        return "\n".join([f"Job {node_id} has ended. The end of {log}:", *lines])

    def node_tags(self, node_id: str) -> dict[str, str]:
        job = self.jobs().get(node_id)
        return dict(job.tags) if job else {}

    def internal_ip(self, node_id: str) -> str:
        job = self.jobs().get(node_id)
        return socket.gethostbyname(job.node) if job and job.node else ""

    def external_ip(self, node_id: str) -> str:
        return self.internal_ip(node_id)

    def set_node_tags(self, node_id: str, tags: dict[str, str]) -> None:
        with self._lock:
            job = self.jobs(fresh=True).get(node_id)
            if job is None:
                return  # it ended in the meantime; Ray will see that
            try:
                jobs.update_tags(node_id, {**job.tags, **tags})
            except jobs.SlurmError:
                # It may have ended since Slurm was asked: the same. All else is an error.
                now = self.jobs(fresh=True).get(node_id)
                if now is not None and now.alive:
                    raise
            self._asked = 0.0

    # ---- making and ending nodes

    def create_node(self, node_config: dict[str, Any], tags: dict[str, str], count: int) -> None:
        self.create_node_with_resources_and_labels(node_config, tags, count, {}, {})

    def create_node_with_resources_and_labels(
        self,
        node_config: dict[str, Any],
        tags: dict[str, str],
        count: int,
        resources: dict[str, float],
        labels: dict[str, str],
    ) -> None:
        is_head = tags[jobs.NODE_KIND] == jobs.HEAD
        common = (self.cluster_name, node_config, jobs.encode(tags), self.directory, self.temp_dir)
        if is_head:
            self.directory.create()
            self.directory.new_token()
            script = head_script(*common)
        else:
            node_type = tags[jobs.NODE_TYPE]
            script = worker_script(*common, node_type, resources, labels)
        try:
            for _ in range(count):
                job_id = jobs.submit(script)
                self._own_head = job_id if is_head else None
        except jobs.SlurmError as error:
            if is_head:  # given by hand: show sbatch's message, without a traceback
                raise click.ClickException(f"Slurm refused the head job: {error}") from error
            raise NodeLaunchException("refused", str(error), None) from error
        finally:
            self._asked = 0.0

    def terminate_node(self, node_id: str) -> None:
        self.terminate_nodes([node_id])

    def terminate_nodes(self, node_ids: list[str]) -> None:
        # When a head stops Ray to go back into the queue, its autoscaler may still see that a node
        # has lost its Ray, and would cancel the job that it runs in itself.
        own = os.environ.get(INSTANCE)
        jobs.cancel([node_id for node_id in node_ids if node_id != own])
        self._asked = 0.0

    def cleanup_cluster_resources(self) -> None:
        """Called by `ray down` when no node is left."""
        self.directory.forget()

    # ---- configuration and commands

    @staticmethod
    def fillout_available_node_types_resources(cluster_config: dict[str, Any]) -> dict[str, Any]:
        return options.fill_resources(cluster_config)

    @staticmethod
    def bootstrap_config(cluster_config: dict[str, Any]) -> dict[str, Any]:
        try:
            options.check_cluster(cluster_config)
        except OptionError as error:
            raise click.ClickException(str(error)) from error
        # Worker jobs start Ray themselves, however long they wait in the queue.
        cluster_config["provider"]["disable_node_updaters"] = True
        return cluster_config

    def get_command_runner(
        self, log_prefix: str, node_id: str, *_: Any, **__: Any
    ) -> SlurmCommandRunner:
        return SlurmCommandRunner(self, node_id)


def _fits(job: jobs.Job, tags: dict[str, str]) -> bool:
    return all(job.tags.get(name) == value for name, value in tags.items())
