"""What a cluster file may say about Slurm, checked before anything is submitted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rllib_conspec.errors import OptionError, did_you_mean

# node_config: the first group becomes one sbatch option each.
SBATCH_OPTIONS = {
    "partition": "partition",
    "account": "account",
    "qos": "qos",
    "constraint": "constraint",
    "reservation": "reservation",
    "nodelist": "nodelist",
    "exclude": "exclude",
    "gres": "gres",
    "time": "time",
    "mem": "mem",
    "cpus": "cpus-per-task",
}
NODE_OPTIONS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(SBATCH_OPTIONS, (str,)),
    "mem": (str, int),
    "cpus": (int,),
    "sbatch": (list,),  # further options, each a line such as --mail-type=END
    "modules": (list,),
    "venv": (str,),
    "setup": (list,),  # shell lines, after modules and venv
    "env": (dict,),
}
PROVIDER_OPTIONS: dict[str, tuple[type, ...]] = {
    "type": (str,),
    "module": (str,),
    "state_dir": (str,),
    "temp_dir": (str,),
}
# Written by Ray, or by SlurmNodeProvider.bootstrap_config, into the file that goes to the head.
_PROVIDER_INTERNAL = ("_config_cache_path", "disable_node_updaters")
# Set by us for every job.
_RESERVED = ("job-name", "comment", "output", "open-mode", "requeue", "no-requeue", "signal")
_RESERVED += ("export", "nodes", "ntasks", "wrap", "parsable", "array")
_OWN_FLAGS = ("--port", "--address", "--node-ip-address", "--temp-dir", "--block")
# Ray has these sections for machines that it has to install first.
UNUSED_SECTIONS = {
    "file_mounts": "the file system is shared",
    "initialization_commands": "use setup: in node_config",
    "setup_commands": "use setup: in node_config",
    "head_setup_commands": "use setup: in node_config",
    "worker_setup_commands": "use setup: in node_config",
    "worker_start_ray_commands": "worker jobs start Ray by themselves",
}
_KINDS = {str: "text", int: "a whole number", list: "a list", dict: "a mapping"}
_TIME = re.compile(r"(\d+-)?\d+(:\d\d){0,2}|UNLIMITED|infinite")
# A Ray resource that only the head has: `rllib train --slurm` asks for a little of it, so that the
# learner is not put on a worker node, which may vanish.
LEARNER = "learner"


def check_cluster(config: Mapping[str, Any]) -> None:
    """Raise an OptionError for the first thing in a cluster file that cannot work on Slurm."""
    name = config.get("cluster_name")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", name):
        raise OptionError(
            "cluster_name", f"up to 40 letters, digits, - _ and . needed, got {name!r}."
        )
    provider = dict(config.get("provider") or {})
    for name in _PROVIDER_INTERNAL:
        provider.pop(name, None)
    _check_types("provider", provider, PROVIDER_OPTIONS, "option")
    for section, instead in UNUSED_SECTIONS.items():
        if config.get(section):
            raise OptionError(section, f"has no meaning on Slurm ({instead}).")
    _check_start(config.get("head_start_ray_commands"))
    if not config.get("available_node_types"):
        raise OptionError("available_node_types", "at least the head's node type is needed.")
    for kind, node_type in config["available_node_types"].items():
        place = f"available_node_types.{kind}"
        if not isinstance(node_type, Mapping):
            raise OptionError(place, "expected a mapping with node_config.")
        check_node(node_type.get("node_config") or {}, f"{place}.node_config")
        _check_resources(node_type, place)


def check_node(options: Mapping[str, Any], place: str = "node_config") -> None:
    """Check the `node_config` of one node type."""
    if isinstance(options.get("time"), int):
        # YAML reads 2:00:00 as the number 7200, which sbatch would take for minutes.
        raise OptionError(f"{place}.time", 'write it in quotes, for example "2:00:00".')
    _check_types(place, options, NODE_OPTIONS, "Slurm option")
    for name in options:
        for text in _texts(options[name]):
            if re.search(r"[\x00-\x1f]", text) and name != "setup":
                raise OptionError(f"{place}.{name}", "must be one line without control characters.")
    time = options.get("time")
    if time is not None and not _TIME.fullmatch(time):
        raise OptionError(f"{place}.time", f'expected days-hours:minutes:seconds, got "{time}".')
    if options.get("cpus", 1) < 1:
        raise OptionError(f"{place}.cpus", "must be at least 1.")
    for line in options.get("sbatch", ()):
        option = re.match(r"--([a-z][a-z-]*)", str(line))
        if not option:
            raise OptionError(
                f"{place}.sbatch", f'expected lines like "--mail-type=END", got "{line}".'
            )
        if option[1] in _RESERVED:
            raise OptionError(f"{place}.sbatch", f"--{option[1]} is set by rllib_conspec.")
        if option[1] in SBATCH_OPTIONS.values():
            names = {value: key for key, value in SBATCH_OPTIONS.items()}
            raise OptionError(
                f"{place}.sbatch", f"use the option {names[option[1]]} instead of {line}."
            )


def resources_of(options: Mapping[str, Any], is_head: bool) -> dict[str, int]:
    """The Ray resources of a node with these Slurm options."""
    found = {"CPU": options.get("cpus", 1)}
    if gpus := gpus_of(options.get("gres", "")):
        found["GPU"] = gpus
    if is_head:
        found[LEARNER] = 1
    return found


def gpus_of(gres: str) -> int:
    """How many GPUs `gpu:rtx8000:1` and the like ask for."""
    count = 0
    for part in gres.split(","):
        words = part.split("(")[0].split(":")
        if words[0] == "gpu":
            count += int(words[-1]) if len(words) > 1 and words[-1].isdigit() else 1
    return count


def fill_resources(config: dict[str, Any]) -> dict[str, Any]:
    """Give every node type the resources that follow from its Slurm options; given ones stay."""
    for kind, node_type in (config.get("available_node_types") or {}).items():
        is_head = kind == config.get("head_node_type")
        derived = resources_of(node_type.get("node_config") or {}, is_head)
        node_type["resources"] = {**derived, **(node_type.get("resources") or {})}
    return config


def _check_start(commands: Any) -> None:
    """The program of the head job starts Ray with the flags of this command and some of its own."""
    place = "head_start_ray_commands"
    if not isinstance(commands, list) or len(commands) != 1:
        raise OptionError(place, 'one command is needed, "ray start --head …".')
    words = str(commands[0]).split()
    if words[:3] != ["ray", "start", "--head"]:
        raise OptionError(place, f'must begin with "ray start --head", got "{commands[0]}".')
    for word in words:
        if word.partition("=")[0] in _OWN_FLAGS:
            raise OptionError(place, f"{word.partition('=')[0]} is chosen by rllib_conspec.")


def _check_resources(node_type: Mapping[str, Any], place: str) -> None:
    """More than the job gets must not be promised to Ray."""
    have = resources_of(node_type.get("node_config") or {}, is_head=False)
    for name, option in (("CPU", "cpus"), ("GPU", "gres")):
        asked = (node_type.get("resources") or {}).get(name, 0)
        if asked > have.get(name, 0):
            raise OptionError(
                f"{place}.resources.{name}",
                f"{asked} is more than {option}: gives the job ({have.get(name, 0)}).",
            )


def _check_types(
    place: str,
    section: Mapping[str, Any],
    types: Mapping[str, tuple[type, ...]],
    what: str,
) -> None:
    for name, value in section.items():
        if name not in types:
            hint = did_you_mean(str(name), types)
            raise OptionError(f"{place}.{name}", f"unknown {what}.{hint}")
        if not isinstance(value, types[name]) or isinstance(value, bool):
            wanted = " or ".join(_KINDS[kind] for kind in types[name])
            raise OptionError(f"{place}.{name}", f"expected {wanted}, got {value!r}.")


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}={one}" for key, one in value.items()]
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]
