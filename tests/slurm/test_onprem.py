"""cluster/onprem.yaml on two fake hosts with real SSH servers."""

import json
import os
import shlex
import subprocess
import sys
import time

import pytest
import yaml
from clusters import KEYS1, PYTHON, ROOT, TINY
from real_slurm import wait_until

SSHD = "/usr/sbin/sshd"


@pytest.fixture
def ssh_key(slurm):
    """A key that lets root in on both nodes, over SSH."""
    folder = slurm.base / "ssh"
    folder.mkdir()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-qN", "", "-f", folder / name], check=True)
    options = {
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "user.pub",
        "StrictModes": "no",
        "PermitRootLogin": "yes",
        "UsePAM": "no",
        "PidFile": "none",
    }
    flags = [f"-o{name}={value}" for name, value in options.items()]
    # On a machine of the user's, ~/.bashrc makes `ray` known. /root is private to each host.
    prepare = f"echo 'PATH={sys.prefix}/bin:$PATH' >> /root/.bashrc; mkdir -p /run/sshd"
    servers = []
    for host in slurm.nodes.values():
        host.run("bash", "-c", prepare)
        servers.append(host.start(SSHD, "-D", "-f", "/dev/null", *flags, env={"HOME": "/root"}))
    yield folder / "user"
    for host, server in zip(slurm.nodes.values(), servers, strict=True):
        host.run("pkill", "sshd")
        server.wait()


@pytest.fixture
def ray(slurm, ssh_key):
    """`ray COMMAND onprem.yaml WORDS` on the login host; no Ray is left at the end."""
    config = yaml.safe_load((ROOT / "cluster" / "onprem.yaml").read_text())
    config["provider"] |= {"head_ip": "10.77.0.11", "worker_ips": ["10.77.0.12"]}
    config["auth"] = {"ssh_user": "root", "ssh_private_key": str(ssh_key)}
    file = slurm.base / "work" / "onprem.yaml"
    file.write_text(yaml.safe_dump(config))

    def call(command, *words):
        flags = ["--yes"] if command in ("up", "down") else []
        program = (PYTHON, "-m", "ray.scripts.scripts")
        return slurm.login.run(*program, command, *flags, file, *words).stdout

    yield call
    for host in slurm.nodes.values():  # only what runs on this fake host
        host.run("pkill", "-9", "-f", "ray", check=False)


def test_up_two_nodes_train_down(slurm, ray):
    start = time.monotonic()
    ray("up")
    print(f"\nray up: {time.monotonic() - start:.0f} s")
    on_head = ". ~/.ray/conspec.env; "
    n1, n2 = slurm.nodes.values()
    wait_until(lambda: n2.processes("/raylet/raylet"), "Ray runs on the second host")
    print(f"two nodes: {time.monotonic() - start:.0f} s")
    cpus = os.cpu_count()  # each fake host has all of this machine's
    both = f"/{2 * cpus}.0 CPU"
    wait_until(lambda: both in ray("exec", on_head + "ray status"), "two nodes", every=1)
    for host in (n1, n2):
        assert host.run("stat", "-c", "%a", "/root/.ray/conspec.token").stdout == "600\n"
    # Without the token the head does not even say how it is.
    status = (PYTHON, "-m", "ray.scripts.scripts", "status", "--address=10.77.0.11:6379")
    refused = n1.run(*status, env={"RAY_AUTH_MODE": "disabled"}, check=False)
    assert refused.returncode != 0 and "uthenticat" in refused.stdout + refused.stderr

    # One more CPU than a host has: both take part.
    config = TINY | {"num_env_runners": 1, "num_cpus_per_env_runner": cpus}
    flags = ["--config", json.dumps(config), "--stop", "{training_iteration: 3}"]
    flags += ["--ray-address", "auto", "--storage-path", "results-onprem"]
    train = shlex.join(["rllib", "train", "-f", str(KEYS1), *flags])
    ray("exec", f"{on_head} cd {slurm.base}/work; {train}")
    (results,) = slurm.base.glob("work/results-onprem/keys1/trial_0/result.json")
    assert len(results.read_text().splitlines()) == 3

    start = time.monotonic()
    ray("down")
    wait_until(lambda: not n1.processes("raylet") + n2.processes("raylet"), "no Ray is left")
    print(f"ray down, and the worker has noticed: {time.monotonic() - start:.0f} s")
