import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.slurm.options import check_cluster, check_node, fill_resources, gpus_of


def cluster(head=None, **changes):
    node_type = {"node_config": {"partition": "gpu", "cpus": 4, **(head or {})}}
    config = {
        "cluster_name": "mine",
        "provider": {"type": "external", "module": "rllib_conspec.slurm.node_provider.X"},
        "head_node_type": "head",
        "head_start_ray_commands": ["ray start --head"],
        "available_node_types": {"head": node_type},
    }
    return {**config, **changes}


def test_every_option_is_accepted():
    check_cluster(
        cluster(
            {
                "account": "lab",
                "qos": "high",
                "constraint": "rtx&nvme",
                "gres": "gpu:rtx8000:1",
                "time": "1-02:30:00",
                "mem": "32G",
                "sbatch": ["--mail-type=END"],
                "modules": ["cuda/12.4"],
                "venv": "~/venv",
                "setup": ["ulimit -n 65536"],
                "env": {"NCCL_SOCKET_IFNAME": "ib0"},
            }
        )
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"partitoin": "gpu"},
            'node_config.partitoin: unknown Slurm option. Did you mean "partition"?',
        ),
        ({"gpus": 1}, 'node_config.gpus: unknown Slurm option. Did you mean "cpus"?'),
        ({"cpus": "4"}, "node_config.cpus: expected a whole number, got '4'."),
        ({"cpus": 0}, "node_config.cpus: must be at least 1."),
        ({"modules": "cuda"}, "node_config.modules: expected a list, got 'cuda'."),
        ({"time": 7200}, 'node_config.time: write it in quotes, for example "2:00:00".'),
        (
            {"time": "2 hours"},
            'node_config.time: expected days-hours:minutes:seconds, got "2 hours".',
        ),
        (
            {"account": "me\n#SBATCH --uid=0"},
            "node_config.account: must be one line without control characters.",
        ),
        (
            {"sbatch": ["mail-type=END"]},
            'node_config.sbatch: expected lines like "--mail-type=END", got "mail-type=END".',
        ),
        ({"sbatch": ["--comment=x"]}, "node_config.sbatch: --comment is set by rllib_conspec."),
        (
            {"sbatch": ["--cpus-per-task=8"]},
            "node_config.sbatch: use the option cpus instead of --cpus-per-task=8.",
        ),
    ],
)
def test_what_cannot_work_is_refused_by_name(options, message):
    with pytest.raises(OptionError) as raised:
        check_node(options)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"cluster_name": "a,b"},
            "cluster_name: up to 40 letters, digits, - _ and . needed, got 'a,b'.",
        ),
        (
            {"provider": {"type": "external", "stat_dir": "x"}},
            'provider.stat_dir: unknown option. Did you mean "state_dir"?',
        ),
        (
            {"file_mounts": {"a": "b"}},
            "file_mounts: has no meaning on Slurm (the file system is shared).",
        ),
        (
            {"setup_commands": ["pip install x"]},
            "setup_commands: has no meaning on Slurm (use setup: in node_config).",
        ),
        (
            {"head_start_ray_commands": ["ray stop", "ray start --head"]},
            'head_start_ray_commands: one command is needed, "ray start --head …".',
        ),
        (
            {"head_start_ray_commands": ["ray start --head --port=6379"]},
            "head_start_ray_commands: --port is chosen by rllib_conspec.",
        ),
        (
            {
                "available_node_types": {
                    "head": {"node_config": {"cpus": 2}, "resources": {"CPU": 4}}
                }
            },
            "available_node_types.head.resources.CPU: 4 is more than cpus: gives the job (2).",
        ),
        (
            {"available_node_types": {"head": {"node_config": {}, "resources": {"GPU": 1}}}},
            "available_node_types.head.resources.GPU: 1 is more than gres: gives the job (0).",
        ),
    ],
)
def test_a_cluster_file_is_checked_as_a_whole(changes, message):
    with pytest.raises(OptionError) as raised:
        check_cluster(cluster(**changes))
    assert str(raised.value) == message


def test_the_place_of_an_unknown_option_is_named():
    with pytest.raises(OptionError, match=r"^available_node_types\.head\.node_config\.gress: "):
        check_cluster(cluster({"gress": "gpu:1"}))


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("", 0),
        ("gpu", 1),
        ("gpu:2", 2),
        ("gpu:rtx8000", 1),
        ("gpu:rtx8000:4", 4),
        ("gpu:a:1,gpu:b:2", 3),
    ],
)
def test_gpus_are_counted(gres, count):
    assert gpus_of(gres) == count
    assert gpus_of(f"{gres},shard:5") == count


def test_resources_follow_from_slurm_options_unless_given():
    config = cluster({"gres": "gpu:rtx8000:1"})
    types = config["available_node_types"]
    types["worker"] = {"node_config": {"cpus": 16}, "resources": {"CPU": 12}}
    fill_resources(config)
    assert types["head"]["resources"] == {"CPU": 4, "GPU": 1, "learner": 1}
    assert types["worker"]["resources"] == {"CPU": 12}
