"""`rllib evaluate`: play episodes with the policy of a checkpoint, in this process, without Ray."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import gymnasium as gym
import numpy as np

from rllib_conspec.cli.checks import checkpoints, environments
from rllib_conspec.cli.checks.environments import Maker
from rllib_conspec.cli.checks.experiment import parse_mapping
from rllib_conspec.environments.finding import name_of
from rllib_conspec.errors import OptionError, UserError

POLICY = "learner_group/learner/rl_module/default_policy"
CONNECTORS = ("env_to_module_connector", "module_to_env_connector")
DEFAULT_EPISODES = 10


class FrameRecorder(gym.Wrapper):
    """Keeps the pictures of the current episode."""

    def __init__(self, env: gym.Env):
        super().__init__(env)
        self.frames: list[np.ndarray] = []

    def reset(self, **kwargs: Any) -> Any:
        result = self.env.reset(**kwargs)
        self.frames = [self.env.render()]
        return result

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        self.frames.append(self.env.render())
        return result


def evaluate(
    checkpoint: str,
    *,
    episodes: int | None,
    steps: int | None,
    explore: bool,
    env: str | None,
    env_config: str | None,
    seed: int,
    out: str | None,
    render: str | None,
    verbose: int,
) -> None:
    """Play and print; see `rllib evaluate --help` for the arguments."""
    from rllib_conspec.cli.running.cluster import quiet_loggers

    quiet_loggers(verbose)
    if episodes and steps:
        raise UserError("--steps: give either --episodes or --steps.")
    path = checkpoints.find(checkpoint)
    _, config = checkpoints.read(path)
    config = config.copy(copy_frozen=False)
    make = _choose_environment(config, env, env_config, path)
    click.echo(f"{path}: {name_of(config.env)}, {'sampled' if explore else 'greedy'} actions")
    recorders: list[FrameRecorder] = []
    if render:
        make = _recording(make, recorders, name_of(config.env))
    runner = build_runner(config, path, seed, make)
    if render:
        Path(render).mkdir(parents=True, exist_ok=True)
    played: list[dict[str, Any]] = []
    while not _enough(played, episodes, steps):
        # One at a time: a group that stops at its first N finishers would favour short episodes.
        # RLlib seeds the environment for every call, with the same seed if we let it.
        runner._seed = seed + len(played)
        played.append(_record(runner.sample(num_episodes=1, explore=explore)[0]))
        if render:
            _write_gif(Path(render) / f"episode_{len(played):03d}.gif", recorders[-1].frames)
    runner.stop()
    for line in summary(played):
        click.echo(line)
    if out:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        Path(out).write_text(
            json.dumps({"checkpoint": str(path), "explore": explore, "episodes": played}, indent=1)
        )
        click.echo(f"episodes    {out}")
    if render:
        click.echo(f"pictures    {render}")


def summary(played: list[dict[str, Any]]) -> list[str]:
    """Lines with the mean, median and quartiles of return and length, and the success rate."""
    returns = np.array([episode["return"] for episode in played])
    lengths = np.array([episode["length"] for episode in played])
    low, median, high = np.percentile(returns, [25, 50, 75])
    lines = [
        f"episodes    {len(played)}",
        f"return      mean {returns.mean():.3f}  median {median:.3f}  "
        f"quartiles {low:.3f} … {high:.3f}  min {returns.min():.3f}  max {returns.max():.3f}",
    ]
    successes = [episode["success"] for episode in played if episode["success"] is not None]
    if successes:
        lines.append(
            f"success     {np.mean(successes):.1%}  ({sum(successes)} of {len(successes)})"
        )
    lines.append(f"length      mean {lengths.mean():.1f}  min {lengths.min()}  max {lengths.max()}")
    return lines


def _choose_environment(
    config: Any, env: str | None, env_config: str | None, checkpoint: Path
) -> Maker:
    """What makes the environment; its spaces are those of the checkpoint."""
    if env:
        config.env, config.env_config = env, {}
    if env_config:
        config.env_config = {**config.env_config, **parse_mapping(env_config, "--env-config")}
    try:
        make, spaces = environments.look_for(config)
    except OptionError as error:
        raise UserError(str(error)) from error
    checkpoints.check_spaces(checkpoint, *spaces)
    return make


def _recording(make: Maker, recorders: list[FrameRecorder], name: str) -> Maker:
    """The same environment with its pictures kept, if it draws any."""

    def make_recording(render_mode: str | None = None) -> gym.Env:
        recorders.append(FrameRecorder(make("rgb_array")))
        return recorders[-1]

    try:
        made = make("rgb_array")
        made.reset()
        frame = made.render()
        made.close()
    except Exception as error:
        raise UserError(f"--render: {name}: {' '.join(str(error).split())}") from error
    if not isinstance(frame, np.ndarray):
        raise UserError(f"--render: {name} draws no pictures.")
    return make_recording


def build_runner(config: Any, path: Path, seed: int, make: Maker) -> Any:
    """RLlib's plain runner: its returns are the environment's, without intrinsic rewards."""
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    path = path.absolute()  # RLlib takes a relative path for a URI
    if not (path / POLICY).is_dir():
        raise UserError(f"{path}: only single-agent checkpoints can be evaluated.")
    config.num_env_runners = 0
    config.num_envs_per_env_runner = 1
    config.gym_env_vectorize_mode = "sync"
    config.num_gpus_per_env_runner = 0
    config.seed = seed
    config.env, config.env_config = lambda _: make(), {}
    try:
        runner = SingleAgentEnvRunner(config=config)
        runner.module.restore_from_path(path / POLICY)
        for connector, part in zip(
            CONNECTORS, (runner._env_to_module, runner._module_to_env), strict=True
        ):
            for place in (path / "env_runner" / connector, path / connector):
                if place.is_dir():
                    part.restore_from_path(place)
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(f"{path}: the policy cannot be restored: {reason}") from error
    return runner


def _record(episode: Any) -> dict[str, Any]:
    info = episode.get_infos(-1) or {}
    success = info.get("is_success")
    return {
        "return": float(episode.get_return()),
        "length": len(episode),
        "success": None if success is None else bool(success),
    }


def _enough(played: list[dict[str, Any]], episodes: int | None, steps: int | None) -> bool:
    if steps:
        return sum(episode["length"] for episode in played) >= steps
    return len(played) >= (episodes or DEFAULT_EPISODES)


def _write_gif(file: Path, frames: list[np.ndarray]) -> None:
    from PIL import Image

    images = [Image.fromarray(frame) for frame in frames]
    images[0].save(file, save_all=True, append_images=images[1:], duration=80, loop=0)
