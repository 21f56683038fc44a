"""Every file in cluster/: against Ray's schema, ours, and the shell's."""

import copy
import subprocess
from pathlib import Path

import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

from rllib_conspec.errors import OptionError
from rllib_conspec.slurm.node_provider import SlurmNodeProvider
from rllib_conspec.slurm.options import check_cluster, fill_resources

FOLDER = Path(__file__).resolve().parents[2] / "cluster"
FILES = sorted(FOLDER.glob("*.yaml"))
SLURM_FILES = [file for file in FILES if file.name.startswith("slurm")]


def load(file):
    return yaml.safe_load(file.read_text())


def test_the_files_are_those_that_the_readme_names():
    names = {"slurm.yaml", "slurm_cpu.yaml", "onprem.yaml"}
    assert {file.name for file in FILES} == names
    readme = (FOLDER / "README.md").read_text()
    assert all(name in readme for name in {*names, "train.sbatch"})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_ray_accepts_it(file):
    config = load(file)
    if file in SLURM_FILES:
        fill_resources(config)
    # What the launcher does; and again on the head, with what the launcher has made of it.
    for _ in range(2):
        config = prepare_config(config)
        validate_config(config)


@pytest.mark.parametrize("file", SLURM_FILES, ids=lambda file: file.name)
def test_we_accept_it(file):
    config = load(file)
    check_cluster(config)
    module, _, name = config["provider"]["module"].rpartition(".")
    assert module == SlurmNodeProvider.__module__ and name == SlurmNodeProvider.__name__
    assert SlurmNodeProvider.bootstrap_config(copy.deepcopy(config))["provider"][
        "disable_node_updaters"
    ]


@pytest.mark.parametrize("file", SLURM_FILES, ids=lambda file: file.name)
def test_an_unknown_option_in_it_is_refused_by_name(file):
    config = load(file)
    for kind, node_type in config["available_node_types"].items():
        changed = copy.deepcopy(config)
        options = changed["available_node_types"][kind]["node_config"]
        options["partion"] = options.pop("partition")
        with pytest.raises(OptionError) as raised:
            check_cluster(changed)
        place = f"available_node_types.{kind}.node_config.partion"
        assert str(raised.value) == f'{place}: unknown Slurm option. Did you mean "partition"?'
        assert node_type["node_config"]["time"]


def test_the_gpu_file_puts_the_learner_on_an_rtx_8000():
    config = fill_resources(load(FOLDER / "slurm.yaml"))
    head = config["available_node_types"][config["head_node_type"]]
    assert head["node_config"]["gres"] == "gpu:rtx8000:1"
    assert head["resources"]["GPU"] == 1 and head["resources"]["learner"] == 1
    workers = [t for name, t in config["available_node_types"].items() if name != "learner"]
    assert all("GPU" not in worker["resources"] for worker in workers)


def test_files_of_our_own_machines_demand_a_token():
    config = load(FOLDER / "onprem.yaml")
    for commands in ("head_start_ray_commands", "worker_start_ray_commands"):
        assert config[commands][-1].startswith(". ~/.ray/conspec.env; ")
    assert "RAY_AUTH_MODE=token" in config["head_setup_commands"][-1]
    assert "--dashboard-host=127.0.0.1" in config["head_start_ray_commands"][-1]


def test_the_batch_script_is_valid_and_can_be_requeued():
    file = FOLDER / "train.sbatch"
    subprocess.run(["bash", "-n", file], check=True)
    text = file.read_text()
    for option in ("--requeue", "--open-mode=append", "--signal=B:USR1@120"):
        assert f"#SBATCH {option}\n" in text
