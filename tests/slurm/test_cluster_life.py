"""The life of one cluster on a real Slurm: up, looked at, trained on, robbed of nodes, down.

The tests of this file build on each other: the cluster is the same in all of them.
"""

import json
import re
import shlex
import stat
import time
from pathlib import Path

import numpy as np
import pytest
from clusters import PYTHON, TINY, Cluster, Training
from real_slurm import wait_until

from rllib_conspec.cli import slurm as slurm_cli
from rllib_conspec.cli.experiment import Experiment
from rllib_conspec.report.found import load_learner
from rllib_conspec.slurm import jobs
from rllib_conspec.slurm.command_runner import BOOTSTRAP

HERE = Path(__file__).parent
RAY_PROGRAMS = ("raylet", "gcs_server", "ray::", "ray.scripts", "ray-dashboard")


@pytest.fixture(scope="module")
def cluster(slurm):
    head = {"cpus": 2, "nodelist": "n1", "gres": "gpu:rtx8000:1"}
    made = Cluster(slurm, "life", head, {"cpus": 2, "nodelist": "n2"})
    start = time.monotonic()
    made.up()
    print(f"\nray up: {time.monotonic() - start:.0f} s")
    yield made
    slurm.login.run("scancel", "--me")
    wait_until(lambda: not slurm.squeue(), "the queue is empty")


@pytest.fixture(scope="module")
def second(slurm):
    """Another cluster of the same user, with its head on the same node."""
    quick = "ray start --head --include-dashboard=false --autoscaling-config=" + BOOTSTRAP
    head, worker = {"cpus": 1, "nodelist": "n1"}, {"cpus": 1, "nodelist": "n2"}
    return Cluster(slurm, "second", head, worker, min_workers=1, head_start_ray_commands=[quick])


@pytest.fixture(scope="module")
def training(cluster):
    flags = ["--config", json.dumps(TINY), "--stop", "{training_iteration: 1000000}"]
    made = Training(cluster, *flags, "--checkpoint-freq", "1", "--keep-checkpoints-num", "40")
    yield made
    made.stop()


def test_up_leaves_one_running_job_that_says_what_it_is(cluster):
    (job,) = cluster.jobs().values()
    assert job.running and job.node == "n1"
    assert job.tags["ray-node-status"] == "up-to-date"
    assert job.tags[jobs.ADDRESS].startswith("10.77.0.11:")


def test_status_shows_the_head_with_its_gpu(cluster):
    status = cluster.exec("ray status")
    assert nodes_in(status) == {"learner": 1}
    assert "0.0/1.0 GPU" in status and "0.0/2.0 CPU" in status


def test_the_gpu_reaches_the_learner(cluster):
    head = slurm_cli.load_cluster(str(cluster.file))["available_node_types"]["learner"]
    config = slurm_cli.cluster_settings([Experiment("keys1")], head["resources"]["GPU"])
    assert config["num_gpus_per_learner"] == 1
    # A script of the user's, brought to the head and run there.
    script = (HERE / "gpu_learner.py", shlex.quote(json.dumps(config)))
    done = cluster.ray("submit", "--no-config-cache", cluster.file, *script)
    assert "PLACE n1 ['0'] 0" in done.stdout


def test_attach_opens_a_shell_on_the_head(cluster):
    login = cluster.slurm.login
    words = (PYTHON, "-m", "ray.scripts.scripts", "attach", "--no-config-cache", cluster.file)
    done = login.run(*words, input="hostname; echo $RAY_ADDRESS\n", env={"SHELL": "/bin/bash"})
    assert f"n1\n{cluster.head.tags[jobs.ADDRESS]}\n" in done.stdout


def test_the_token_is_in_its_file_and_nowhere_else(cluster):
    token = cluster.directory.token.read_text()
    assert len(token) == 64
    modes = {
        path: stat.S_IMODE(path.stat().st_mode)
        for path in [cluster.directory.path, *cluster.directory.path.iterdir()]
    }
    assert all(mode & 0o077 == 0 for mode in modes.values()), modes
    login, hosts = cluster.slurm.login, cluster.slurm.nodes.values()
    seen = login.run("squeue", "-o", "%all").stdout + login.run("scontrol", "show", "job").stdout
    seen += "".join(host.run("ps", "-eo", "args").stdout for host in (login, *hosts))
    seen += cluster.logs()
    find = "cat /tmp/ray-*/t/session_latest/logs/*; stat -c %a /tmp/ray-*"
    session = cluster.slurm.nodes["n1"].run("bash", "-c", find, errors="replace").stdout
    assert session.endswith("\n700\n")
    assert "ray-life" in seen and "gcs_server" in session, "the test looks at the wrong things"
    assert token not in seen + session
    # The comment, which everyone can read, holds only tags.
    assert all(len(value) != 64 for value in cluster.head.tags.values())


def test_another_user_gets_nowhere_without_the_token(cluster):
    """Neither on the network nor on the head's own loopback; the owner's token opens everything."""
    n1, n2 = (cluster.slurm.nodes[name] for name in ("n1", "n2"))
    (head,) = n1.processes("ray.scripts.scripts start --block --head")
    port = re.search(r"--dashboard-port=(\d+)", head)[1]
    loopback, outside = f"dashboard=127.0.0.1:{port}", f"dashboard={n1.address}:{port}"
    common = (f"token={cluster.directory.token}", f"gcs={cluster.head.tags[jobs.ADDRESS]}")

    def attempts(host, who, what, *more):
        words = (PYTHON, HERE / "other_user.py", f"as={who}", f"try={what}", *common, *more)
        lines = host.run(*words, timeout=120).stdout.splitlines()
        results = dict(line.split(": ", 1) for line in lines if ": " in line)
        assert set(results) >= set(what.split(",")), lines
        return {name: results[name] for name in what.split(",")}

    granted = attempts(n1, "owner", "read_token,connect,write,submit", loopback)
    assert all(result.startswith("done") for result in granted.values()), granted
    for who in ("stranger", "guesser"):
        refused = attempts(n1, who, "read_token,connect,write,submit", loopback)
        assert refused["read_token"].startswith("PermissionError")
        assert "uthenticat" in refused["connect"] and "uthenticat" in refused["write"], refused
        assert re.search("HTTPError: HTTP Error 40[13]", refused["submit"]), refused
    refused = attempts(n2, "stranger", "connect,write,submit", outside)
    assert "Connection refused" in refused["submit"], refused
    assert not any(result.startswith("done") for result in refused.values()), refused
    # Nobody listens for ray:// addresses.
    assert n1.processes("ray.util.client.server") == []


def test_a_second_cluster_lives_beside_the_first(cluster, second):
    second.up()
    n2 = second.slurm.nodes["n2"]
    wait_until(lambda: n2.processes("/raylet/raylet"), "its worker has joined")
    assert nodes_in(second.exec("ray status")) == {"learner": 1, "rollouts": 1}
    assert cluster.head.node == second.head.node == "n1"
    assert nodes_in(cluster.exec("ray status")) == {"learner": 1}
    assert cluster.directory.token.read_text() != second.directory.token.read_text()


def test_a_worker_leaves_when_its_head_is_gone(cluster, second):
    """The head gets no chance to cancel it: its node died, say."""
    start = time.monotonic()
    second.slurm.login.run("scancel", "--signal=KILL", "--full", second.head.id)
    wait_until(lambda: not second.jobs(), "all its jobs have ended", 90)
    print(f"\nhead killed, worker gone after {time.monotonic() - start:.0f} s")
    assert cluster.head.running


def test_training_makes_the_autoscaler_start_a_worker(cluster, training):
    start = time.monotonic()
    training.wait_for(cluster.workers, "a worker job")
    training.wait_for_iterations(5)
    print(f"\nfrom the command to the fifth iteration: {time.monotonic() - start:.0f} s")
    assert nodes_in(cluster.exec("ray status")) == {"learner": 1, "rollouts": 1}
    (worker,) = cluster.workers()
    assert worker.running and worker.node == "n2"


def test_a_lost_worker_is_replaced_while_the_run_goes_on(cluster, training):
    usual = training.wait_for_iterations(10) / 10
    (worker,) = cluster.workers()
    cluster.slurm.login.run("scancel", worker.id)
    start, before = time.monotonic(), len(training.iterations())
    n2 = cluster.slurm.nodes["n2"]
    training.wait_for(
        lambda: [job for job in cluster.workers() if job.id != worker.id and job.running],
        "a new job",
    )
    training.wait_for(
        lambda: n2.processes("ray::EpisodeRunner"), "a rollout worker on the new node"
    )
    back = time.monotonic() - start
    done = len(training.iterations()) - before
    print(f"\nworker cancelled: back after {back:.0f} s, {back - done * usual:.0f} s lost")
    assert done > 0, "the run stood still"
    training.wait_for_iterations(3)
    shown = training.iterations()
    assert shown == list(range(1, len(shown) + 1)), "an iteration is missing or was repeated"


def test_a_preempted_head_comes_back_with_its_memories(cluster, training):
    login = cluster.slurm.login
    start, head = time.monotonic(), cluster.head
    login.run("sbatch", "-p", "urgent", "--exclusive", "--nodelist=n1", "--wrap", "sleep 1")
    wait_until(lambda: not cluster.head.running, "the head is requeued", 60)
    out = time.monotonic() - start
    before = training.iterations()[-1]
    (trial,) = training.results.glob("keys1/trial_0")
    saved = max(trial.glob("checkpoint_*"))
    training.wait_for_iterations(2, after="Resuming")
    print(f"\nhead preempted: off its node after {out:.0f} s, ", end="")
    print(f"second iteration after {time.monotonic() - start:.0f} s")
    assert cluster.head.id == head.id
    repeated = before + 1 - training.iterations(after="Resuming")[0]
    assert 0 <= repeated <= 2
    next_one = saved.with_name(f"checkpoint_{int(saved.name[-6:]) + 1:06}")
    assert_continued(load_learner(saved), load_learner(next_one))


def test_down_with_a_live_worker_leaves_nothing(cluster, training):
    training.wait_for(cluster.workers, "a worker job")
    assert training.interrupt() == 130
    assert "The run goes on." in training.output
    hosts = cluster.slurm.nodes.values()
    start = time.monotonic()
    cluster.down()
    print(f"\nray down: {time.monotonic() - start:.0f} s")
    assert cluster.slurm.squeue() == []
    for host in hosts:
        assert [line for program in RAY_PROGRAMS for line in host.processes(program)] == []
    assert not cluster.directory.token.exists()


def nodes_in(status):
    """{node type: count} of the nodes that `ray status` calls active or idle."""
    alive = status[status.index("Active:") : status.index("Pending:")]
    return {kind: int(count) for count, kind in re.findall(r"^ (\d+) (\S+)$", alive, re.MULTILINE)}


def assert_continued(saved, after):
    """`after` is `saved` and one iteration: its memories begin where those of `saved` stopped."""
    assert after.version > saved.version > 0
    assert saved.exemplars, "the test needs a frozen prototype"
    for prototype, exemplars in saved.exemplars.items():
        for mine, theirs in zip(
            (*exemplars.successes, *exemplars.failures),
            (*after.exemplars[prototype].successes, *after.exemplars[prototype].failures),
            strict=True,
        ):
            assert np.array_equal(mine.frames, theirs.frames)
    assert all(len(memory) for memory in (saved.successes, saved.failures))
    for before, now in zip(saved._memories, after._memories, strict=True):
        new = now.seen - before.seen
        assert 0 <= new <= TINY["episodes_per_batch"]
        kept = [*before][max(0, len(before) + new - TINY["conspec"]["memory_size"]) :]
        for mine, theirs in zip(kept, now, strict=False):
            assert np.array_equal(mine.frames, theirs.frames)
