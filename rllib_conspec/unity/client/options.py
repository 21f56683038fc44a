"""The ``env_config`` of a Unity environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

from rllib_conspec.errors import OptionError, did_you_mean
from rllib_conspec.unity.client import builtin
from rllib_conspec.unity.client.launch import find_executable
from rllib_conspec.unity.client.ports import LAST_PORT

ENGINE = (
    "width",
    "height",
    "quality_level",
    "time_scale",
    "target_frame_rate",
    "capture_frame_rate",
)
OWN_PARAMETERS = ("seed_high", "seed_low")


@dataclass(frozen=True)
class PlayerOptions:
    """What to start and how; the fields are those of `UnityVectorEnv`."""

    file_name: str = ""
    num_agents: int | None = None  # None: as many as the player has
    base_port: int = 5005
    timeout: float = 30.0
    no_graphics: bool = True
    parameters: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, Any] = field(default_factory=dict)
    additional_args: tuple[str, ...] = ()
    log_dir: str | None = None
    behavior: str = ""

    def __post_init__(self) -> None:
        if self.num_agents is not None and self.num_agents < 1:
            raise OptionError("num_agents", f"must be at least 1, not {self.num_agents!r}")
        if not 1024 <= self.base_port <= LAST_PORT:
            raise OptionError("base_port", f"must be 1024 to {LAST_PORT}, not {self.base_port!r}")
        if not self.timeout > 0:
            raise OptionError("timeout", f"must be above 0 seconds, not {self.timeout!r}")
        for name, value in self.parameters.items():
            if name in OWN_PARAMETERS:
                raise OptionError("parameters", f"{name} is set from the seed, not by hand")
            if not isinstance(value, Real | str):
                raise OptionError("parameters", f"{name} must be a number or a word, not {value!r}")
        for name, value in self.engine.items():
            if name not in ENGINE:
                raise OptionError("engine", f"unknown setting {name}.{did_you_mean(name, ENGINE)}")
            if not isinstance(value, Real):
                raise OptionError("engine", f"{name} must be a number, not {value!r}")
        if ("width" in self.engine) != ("height" in self.engine):
            raise OptionError("engine", "width and height must be given together")
        if not all(isinstance(argument, str) for argument in self.additional_args):
            raise OptionError("additional_args", "must be a list of texts")

    @property
    def built_in(self) -> bool:
        """Whether no build is named."""
        return not self.file_name

    def command(self, port: int) -> list[str]:
        """The program and its arguments, but for the port, which mlagents-envs' way adds."""
        if self.built_in:
            command = builtin.command(self.num_agents or 1)
        else:
            command = [str(find_executable(self.file_name))]
        if self.no_graphics:
            command += ["-nographics", "-batchmode"]
        if self.log_dir is not None and "-logfile" not in map(str.lower, self.additional_args):
            command += ["-logFile", str(self._logs() / f"player-{port}.log")]
        return [*command, *self.additional_args]

    def _logs(self) -> Path:
        path = Path(self.log_dir).expanduser().absolute()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError("log_dir", f"cannot make {path}: {error.strerror}") from error
        return path

    def environment(self) -> dict[str, str]:
        """Variables of the player's process."""
        return builtin.environment() if self.built_in else dict(os.environ)
