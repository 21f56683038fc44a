"""Find checkpoints, tell whole ones from broken ones, and read what they were made with."""

from __future__ import annotations

import json
import os
import pickle
import pickletools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rllib_conspec.errors import UserError
from rllib_conspec.networks.encoders import resolve_encoder
from rllib_conspec.reward_models import options_of
from rllib_conspec.reward_models.together import models_in

MARKER = "rllib_checkpoint.json"
# Written last, with every file's size: a checkpoint that differs from it was cut short.
MANIFEST = "files.json"
LEARNER_STATE = "learner_group/learner/state.pkl"
EARLIER_VERSION = "was made by an earlier version, whose checkpoints cannot be read."


def find(path: str | os.PathLike) -> Path:
    """The checkpoint at `path`, or the newest whole one of a trial or experiment directory."""
    root = Path(path).expanduser()
    if not root.exists():
        raise UserError(f"{path}: no such checkpoint.")
    if not root.is_dir():
        raise UserError(f"{path}: a checkpoint is a directory, this is a file.")
    if (root / MARKER).exists() or root.name.startswith("checkpoint_"):
        found = [root]
    else:
        found = sorted(
            [*root.glob("checkpoint_*"), *root.glob("*/checkpoint_*")],
            key=lambda directory: (directory.stat().st_mtime, directory.name),
            reverse=True,
        )
    if not found:
        raise UserError(f"{path}: no checkpoint in this directory.")
    for directory in found:
        if problem(directory) is None:
            return directory
    raise UserError(f"{found[0]}: {problem(found[0])}")


def problem(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint, or None."""
    manifest = _read_json(checkpoint / MANIFEST, default={})
    for name, size in manifest.items():
        file = checkpoint / name
        if not file.exists():
            return f"checkpoint is incomplete: {name} is missing."
        if file.stat().st_size != size:
            return f"checkpoint is cut short: {name} has {file.stat().st_size} of {size} bytes."
    for directory in (checkpoint, *_component_directories(checkpoint)):
        name = MARKER if directory == checkpoint else "metadata.json"
        metadata = _read_json(directory / name, default=None)
        label = directory.relative_to(checkpoint)
        if metadata is None:
            return f"checkpoint is incomplete: {label / name} is missing or damaged."
        state = metadata.get("state_file", "state")
        arguments = metadata.get("class_and_ctor_args_file", "class_and_ctor_args.pkl")
        if not (directory / arguments).exists():
            return f"checkpoint is incomplete: {label / arguments} is missing."
        if not any((directory / (state + end)).exists() for end in (".pkl", ".msgpack")):
            return f"checkpoint is incomplete: {label / state}.pkl is missing."
    if not (checkpoint / "learner_group").is_dir():
        return "checkpoint is incomplete: learner_group is missing."
    # Sizes are enough where they are known; RLlib's own saves have to be read through.
    for file in () if manifest else sorted(checkpoint.rglob("*.pkl")):
        if not _is_whole_pickle(file):
            return f"checkpoint is cut short: {file.relative_to(checkpoint)} is damaged."
    return None


def write_manifest(checkpoint: Path) -> None:
    """Record the size of every file, in one step (a half-written manifest must not be seen)."""
    sizes = {
        file.relative_to(checkpoint).as_posix(): file.stat().st_size
        for file in sorted(checkpoint.rglob("*"))
        if file.is_file() and file.name != MANIFEST
    }
    draft = checkpoint / (MANIFEST + ".tmp")
    draft.write_text(json.dumps(sizes, indent=1))
    draft.replace(checkpoint / MANIFEST)


def read(checkpoint: Path) -> tuple[type, Any]:
    """The Algorithm class of a checkpoint and the AlgorithmConfig it ran with."""
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

    stored = _unpickle(checkpoint, "class_and_ctor_args.pkl")
    try:
        (state, *_), _ = stored["ctor_args_and_kwargs"]
        _check_version(checkpoint, state)
        return stored["class"], AlgorithmConfig.from_state(state)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{checkpoint}: not an RLlib algorithm checkpoint.") from error


def _check_version(checkpoint: Path, config: dict[str, Any]) -> None:
    """Refuse a checkpoint of ours whose parts are no longer what they were."""
    from rllib_conspec.algorithm.config import RewardModelConfig

    if not issubclass(config["class"], RewardModelConfig):
        return
    if "reward_models" not in config:
        raise UserError(f"{checkpoint}: {EARLIER_VERSION}")
    if config["reward_models"] and (checkpoint / LEARNER_STATE).exists():
        state = _unpickle(checkpoint, LEARNER_STATE)
        try:
            models_in(state.get("reward_model"))
        except UserError as error:
            raise UserError(f"{checkpoint}: {error}") from error


def read_spaces(checkpoint: Path) -> tuple[Any, Any]:
    """Observation and action space of the policy in a checkpoint (None where not recorded)."""
    name = "learner_group/learner/rl_module/default_policy/class_and_ctor_args.pkl"
    if not (checkpoint / name).exists():
        return None, None
    _, arguments = _unpickle(checkpoint, name)["ctor_args_and_kwargs"]
    return arguments.get("observation_space"), arguments.get("action_space")


def check_fits(checkpoint: Path, algorithm: type, config: Any, spaces: Any) -> None:
    """Refuse a checkpoint of another algorithm, of other spaces (None: unknown) or networks.

    The environment may be another one: that is what transfer is.
    """
    made_by, stored = read(checkpoint)
    if made_by.__name__ != algorithm.__name__:
        raise UserError(
            f"{checkpoint}: is a checkpoint of {made_by.__name__}, not of {algorithm.__name__}."
        )
    if spaces is not None:
        check_spaces(checkpoint, *spaces)
    # Only a configuration that ran has looked at its environment. Observations are the same.
    facts = getattr(stored, "facts", None)
    before, now = weight_sizes(stored, facts), weight_sizes(config, facts)
    for key in before.keys() & now.keys():
        if before[key] != now[key]:
            raise UserError(
                f"{checkpoint}: has other networks: {key} {before[key]!r}, not {now[key]!r}."
            )


def weight_sizes(config: Any, facts: Any = None) -> dict[str, Any]:
    """Options of ours that the shapes of a checkpoint's weights depend on. `facts` say what `auto`
    stands for.
    """
    sizes = {}
    given = getattr(config, "_model_config", None)
    if hasattr(config, "episodes_per_minibatch") and isinstance(given, dict):
        from rllib_conspec.algorithm.policy import MODEL_CONFIG

        model = MODEL_CONFIG | given
        sizes |= {f"model_config.{key}": model[key] for key in MODEL_CONFIG}
    sizes |= getattr(config, "network_sizes", {})
    if hasattr(config, "reward_models"):
        for name, model in config.reward_models_of().items():
            options = options_of(name, config.reward_models[name], config.preset)
            sizes |= {f"{model.name}.{key}": size for key, size in model.sizes(options).items()}
    if facts is not None:
        auto = resolve_encoder("auto", facts.observation_space.shape, facts.channels)
        sizes = {key: auto if size == "auto" else size for key, size in sizes.items()}
    return sizes


def check_spaces(checkpoint: Path, observation_space: Any, action_space: Any) -> None:
    """Refuse to run a checkpoint in an environment whose spaces its policy does not know."""
    for stored, given, what in zip(
        read_spaces(checkpoint),
        (observation_space, action_space),
        ("observations", "actions"),
        strict=True,
    ):
        if stored is not None and stored != given:
            raise UserError(
                f"{checkpoint}: is a checkpoint of another task: {what} {stored}, not {given}."
            )


def _component_directories(checkpoint: Path) -> Iterator[Path]:
    """Directories that RLlib wrote a component into (each has files, not only directories)."""
    for directory in sorted(path for path in checkpoint.rglob("*") if path.is_dir()):
        if any(directory.glob("*.pkl")) or any(directory.glob("*.json")):
            yield directory


def _read_json(file: Path, default: Any) -> Any:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return default


def _is_whole_pickle(file: Path) -> bool:
    """Read a pickle's instructions up to the last one, without following them."""
    try:
        with file.open("rb") as stream:
            for _ in pickletools.genops(stream):
                pass
    except (ValueError, EOFError):
        return False
    return True


def _unpickle(checkpoint: Path, name: str) -> Any:
    try:
        with (checkpoint / name).open("rb") as stream:
            return pickle.load(stream)
    except (ImportError, AttributeError) as error:  # of modules and classes that are not there
        if "rllib_conspec." in str(error):
            raise UserError(f"{checkpoint}: {EARLIER_VERSION}") from error
        raise UserError(f"{checkpoint}: needs something that is not here: {error}.") from error
    except Exception as error:
        raise UserError(f"{checkpoint}: checkpoint is damaged: {name}: {error}.") from error
