"""Which algorithms can be given reward models: one line for each that cannot."""

from __future__ import annotations

import inspect
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.cql import CQL
from ray.rllib.algorithms.marwil import MARWIL
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from rllib_conspec.errors import OptionError


def check_algorithm(base: Any) -> None:
    """Raise an `OptionError` if `base` cannot be given reward models, whatever its settings."""
    name = getattr(base, "__name__", repr(base))
    if not (inspect.isclass(base) and issubclass(base, Algorithm)):
        raise OptionError(name, "is not an RLlib algorithm: give a class derived from Algorithm.")
    if (why := why_not(base)) is not None:
        raise OptionError(name, f"cannot be given reward models: {why}.")


def why_not(base: type[Algorithm]) -> str | None:
    """Why an algorithm cannot be given reward models; None: it can."""
    config = base.get_default_config()
    if issubclass(base, (MARWIL, CQL)):
        return "it learns from recorded data and plays no episodes that could be paid"
    if not (config.enable_rl_module_and_learner and config.enable_env_runner_and_connector_v2):
        return "it is written for RLlib's old API stack; they need RLModules and Learners"
    runner = config.env_runner_cls or SingleAgentEnvRunner
    if not issubclass(SingleAgentEnvRunner, runner):
        return f"it plays with a rollout worker of its own, {runner.__name__}, not with RLlib's"
    if config.framework_str != "torch":
        return f"it is written for {config.framework_str}; they need torch"
    learner = config.get_default_learner_class()
    if not (inspect.isclass(learner) and issubclass(learner, TorchLearner)):
        return "its learner is not a TorchLearner"
    return None


def check_settings(config: AlgorithmConfig) -> None:
    """Raise an `OptionError` for a setting that reward models cannot live with."""
    for option in ("enable_rl_module_and_learner", "enable_env_runner_and_connector_v2"):
        if not getattr(config, option):
            raise OptionError(option, "must be true: reward models need RLlib's new API stack.")
    if config.framework_str != "torch":
        raise OptionError("framework", "must be torch: reward models are.")
    if config.is_multi_agent:
        raise OptionError("policies", "reward models are for a single agent: leave them out.")
    if inspect.isclass(config.env) and issubclass(config.env, MultiAgentEnv):
        raise OptionError("env", "has several agents; reward models are for a single one.")
    if config.is_offline:
        raise OptionError(
            "input_", "reward models pay for episodes that are played: leave recorded data out."
        )
