"""The life of one cluster on a real Slurm: up, looked at, trained on, robbed of nodes, down.

The tests of this file build on each other: the cluster is the same in all of them.
"""

import json
import pickle
import re
import shlex
import stat
import time
from pathlib import Path

import numpy as np
import pytest
from clusters import PYTHON, TINY, Cluster, Training
from real_slurm import WAIT_SECONDS, wait_until

from rllib_conspec.cli.checks.experiment import Experiment
from rllib_conspec.cli.running import slurm as slurm_cli
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner
from rllib_conspec.reward_models.together import models_in
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
    """Another cluster of the same user, with its nodes on the same hosts."""
    quick = "ray start --head --include-dashboard=false --autoscaling-config=" + BOOTSTRAP
    head, worker = {"cpus": 1, "nodelist": "n1"}, {"cpus": 1, "nodelist": "n2"}
    return Cluster(slurm, "second", head, worker, head_start_ray_commands=[quick])


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
    status = wait_for_nodes(cluster, {"learner": 1})
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
    seen += "".join(host.run("ps", "-eww", "-o", "args").stdout for host in (login, *hosts))
    seen += cluster.logs()
    find = 'cd "$(dirname /tmp/ray-*/owner)"; cat t/session_latest/logs/*; stat -c %a .'
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

        def answers():
            lines = host.run(*words).stdout.splitlines()
            results = dict(line.split(": ", 1) for line in lines if ": " in line)
            assert set(results) >= set(what.split(",")), lines
            # No answer in time, or not ready yet, is no refusal: tried again.
            late = [r for r in results.values() if re.search("(?i)timed? ?out|deadline|Error 5", r)]
            return None if late else {name: results[name] for name in what.split(",")}

        return wait_until(answers, f"{who} is answered", every=1)

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


def test_one_command_brings_up_a_second_cluster_beside_the_first_and_trains(cluster, second):
    config = TINY | {"num_env_runners": 1}
    flags = ("--config", json.dumps(config), "--stop", "{training_iteration: 2}")
    start = time.monotonic()
    training = Training(second, *flags)
    try:
        assert training.process.wait(WAIT_SECONDS) == 0, training.output
    finally:
        training.stop()
    print(f"\nfrom nothing to the end of a run of 2 iterations: {time.monotonic() - start:.0f} s")
    assert "ray up --yes" in training.output and "Submitted to second: " in training.output
    assert training.iterations() == [1, 2]
    # The learner on one host, the rollouts on the other, both of which the first cluster uses too.
    wait_for_nodes(second, {"learner": 1, "rollouts": 1})
    assert cluster.head.node == second.head.node == "n1"
    wait_for_nodes(cluster, {"learner": 1})
    assert cluster.directory.token.read_text() != second.directory.token.read_text()


def test_a_worker_leaves_when_its_head_is_gone(cluster, second):
    """The head gets no chance to cancel it: its node died, say."""
    start = time.monotonic()
    # Not with scancel: Slurm first asks politely, whatever the signal.
    second.slurm.nodes["n1"].run("pkill", "-KILL", "-f", "rllib_conspec.slurm.head_job second ")
    wait_until(lambda: not second.jobs(), "all its jobs have ended")
    print(f"\nhead killed, worker gone after {time.monotonic() - start:.0f} s")
    assert cluster.head.running


def test_what_a_killed_head_left_on_its_node_is_swept(cluster, second):
    """By the next job of its cluster there; the first cluster's directory is in use."""
    n1, n2 = (second.slurm.nodes[name] for name in ("n1", "n2"))
    assert sorted(session_owners(n1)) == ["life", "second"] and session_owners(n2) == []
    code = "from rllib_conspec.slurm.session_directory import sweep; sweep('/tmp', {!r})"
    for name in ("life", "second"):
        n1.run(PYTHON, "-c", code.format(name))
    assert session_owners(n1) == ["life"]


def test_training_makes_the_autoscaler_start_a_worker(cluster, training):
    start = time.monotonic()
    training.wait_for(cluster.workers, "a worker job")
    training.wait_for_iterations(5)
    print(f"\nfrom the command to the fifth iteration: {time.monotonic() - start:.0f} s")
    wait_for_nodes(cluster, {"learner": 1, "rollouts": 1})
    (worker,) = cluster.workers()
    assert worker.running and worker.node == "n2"


def test_a_lost_worker_is_replaced_while_the_run_goes_on(cluster, training):
    usual = training.wait_for_iterations(3) / 3
    (worker,) = cluster.workers()
    cluster.slurm.login.run("scancel", worker.id)
    start, before = time.monotonic(), len(training.iterations())
    n2 = cluster.slurm.nodes["n2"]
    training.wait_for(
        lambda: (
            worker.id not in cluster.jobs() and [job for job in cluster.workers() if job.running]
        ),
        "the old job has gone, and a new one runs",
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
    show = ("scontrol", "show", "job", head.id)
    wait_until(lambda: "Restarts=1" in login.run(*show).stdout, "the head is requeued")
    out = time.monotonic() - start
    training.wait_for_iterations(2, after="Resuming")
    print(f"\nhead preempted: off its node after {out:.0f} s, ", end="")
    print(f"second iteration after {time.monotonic() - start:.0f} s, ", end="")
    assert cluster.head.id == head.id
    before, after = training.iterations(before="Resuming"), training.iterations(after="Resuming")
    repeated = before[-1] + 1 - after[0]
    print(f"{repeated} iterations repeated")
    assert 0 <= repeated <= 2
    # There is a checkpoint of every iteration, counted from 0: the one that it came back from, and
    # the first one afterwards.
    (trial,) = training.results.glob("keys1/trial_0")
    paths = (trial / f"checkpoint_{after[0] - n:06}" for n in (2, 1))
    (updates, saved), (more, first) = map(in_checkpoint, paths)
    assert more > updates > 0
    assert_continued(saved, first)


def test_down_with_a_live_worker_leaves_nothing(cluster, training):
    wait_for_nodes(cluster, {"learner": 1, "rollouts": 1})
    assert training.interrupt() == 130
    assert "The run goes on." in training.output
    hosts = cluster.slurm.nodes.values()
    start = time.monotonic()
    cluster.down()
    print(f"\nray down: {time.monotonic() - start:.0f} s")
    assert cluster.slurm.squeue() == []
    for host in hosts:
        assert [line for program in RAY_PROGRAMS for line in host.processes(program)] == []
        assert session_owners(host) == []
    assert not cluster.directory.token.exists()


def wait_for_nodes(cluster, nodes):
    """Until `ray status` shows these: it learns of a node some time after its Ray runs."""

    def status():
        shown = cluster.exec("ray status")
        return shown if nodes_in(shown) == nodes else None

    return wait_until(status, f"ray status shows {nodes}", every=1)


def session_owners(host):
    """The clusters that have a directory for Ray on this host."""
    found = host.run("bash", "-c", "tail -n +1 -v /tmp/ray-*/owner", check=False).stdout
    return re.findall(r"==>.*<==\n(\S+)", found)


def nodes_in(status):
    """{node type: count} of the nodes that `ray status` calls active or idle."""
    alive = status.partition("Active:")[2].partition("Pending:")[0]
    return {kind: int(count) for count, kind in re.findall(r"^ (\d+) (\S+)$", alive, re.MULTILINE)}


def in_checkpoint(path):
    """(updates of the reward models so far, ConSpec's learner)"""
    learner = (path / "learner_group" / "learner" / "state.pkl").read_bytes()
    state = pickle.loads(learner)["reward_model"]
    return state["version"], ConSpecLearner.from_state(models_in(state)["conspec"])


def assert_continued(saved, after):
    """`after` is `saved` and one iteration: its memories begin where those of `saved` stopped."""
    assert saved.memory.frozen, "the test needs a frozen prototype"
    for prototype in saved.memory.frozen:
        own, theirs = (one.memory.examples(prototype) for one in (saved, after))
        for mine, their in zip(own, theirs, strict=True):
            assert [e.frames.tobytes() for e in mine] == [e.frames.tobytes() for e in their]
    assert all(saved.memory.count)
    pairs = zip(saved.memory.examples(None), after.memory.examples(None), strict=True)
    seen = zip(saved.memory.seen, after.memory.seen, strict=True)
    for (before, now), (earlier, later) in zip(pairs, seen, strict=True):
        new = later - earlier
        assert 0 <= new <= TINY["episodes_per_batch"]
        kept = [*before][max(0, len(before) + new - TINY["conspec"]["memory_size"]) :]
        for mine, theirs in zip(kept, now, strict=False):
            assert np.array_equal(mine.frames, theirs.frames)
