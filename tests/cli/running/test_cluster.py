import os

import pytest
from ray._private import worker
from ray.rllib.algorithms.ppo import PPO, PPOConfig

from rllib_conspec.cli.running import cluster
from rllib_conspec.errors import UserError


def test_the_largest_need_of_all_trials_counts():
    configs = [
        PPOConfig().environment("CartPole-v1").env_runners(num_env_runners=n) for n in (0, 3, 1)
    ]
    assert cluster.resources_needed(PPO, configs)["CPU"] == 4


@pytest.mark.parametrize(
    ("address", "num_cpus", "message"),
    [
        (None, 2, "--ray-num-cpus: 2 given, one trial needs 3."),
        ("auto", 2, "--ray-num-cpus and --ray-num-gpus are for a local Ray, not --ray-address."),
    ],
)
def test_too_few_cpus_are_refused_before_ray_starts(address, num_cpus, message):
    with pytest.raises(UserError) as raised:
        cluster.start_ray({"CPU": 3.0}, address, num_cpus, None, 0, print)
    assert str(raised.value) == message


def test_what_the_user_has_set_stays(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setattr(cluster, "SETTINGS", dict.fromkeys(cluster.THREADS, "1"))
    cluster.prepare_environment(verbose=1)
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert os.environ["MKL_NUM_THREADS"] == "1"


def test_rays_paragraph_about_a_death_is_left_out_and_nothing_else(monkeypatch):
    shown = []
    monkeypatch.setattr(worker, "print_to_stdstream", lambda data, **_: shown.append(data["lines"]))
    cluster._leave_out_deaths()
    death = "A worker died or was killed while executing a task by an unexpected system error."
    for line in (death, "Out of disk space."):
        worker.print_to_stdstream({"lines": [line], "pid": "raylet"}, ignore_prefix=False)
    assert shown == [["Out of disk space."]]
