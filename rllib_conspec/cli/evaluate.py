"""`rllib evaluate`: play episodes with the policy of a checkpoint, in this process, without Ray."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import gymnasium as gym
import numpy as np

from rllib_conspec.cli import checkpoints
from rllib_conspec.cli.environments import check_environment
from rllib_conspec.cli.experiment import parse_mapping
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
    from rllib_conspec.cli.cluster import quiet_loggers

    quiet_loggers(verbose)
    if episodes and steps:
        raise UserError("--steps: give either --episodes or --steps.")
    path = checkpoints.find(checkpoint)
    _, config = checkpoints.read(path)
    config = config.copy(copy_frozen=False)
    _choose_environment(config, env, env_config, path)
    click.echo(f"{path}: {config.env}, {'sampled' if explore else 'greedy'} actions")
    runner, recorders = _build_runner(config, path, seed, bool(render))
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
) -> None:
    if env:
        config.env, config.env_config = env, {}
    if env_config:
        config.env_config = {**config.env_config, **parse_mapping(env_config, "--env-config")}
    if not isinstance(config.env, str):
        return
    try:
        spaces = check_environment(config.env, config.env_config)
    except OptionError as error:
        raise UserError(str(error)) from error
    checkpoints.check_spaces(checkpoint, *spaces)


def _build_runner(
    config: Any, path: Path, seed: int, record: bool
) -> tuple[Any, list[FrameRecorder]]:
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
    recorders: list[FrameRecorder] = []
    if record:
        name, settings = config.env, {**config.env_config, "render_mode": "rgb_array"}
        _check_rendering(name, settings)

        def create(_: Any) -> gym.Env:
            recorders.append(FrameRecorder(gym.make(name, **settings)))
            return recorders[-1]

        config.env, config.env_config = create, {}
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
    return runner, recorders


def _check_rendering(env: str, settings: dict[str, Any]) -> None:
    try:
        made = gym.make(env, **settings)
        made.reset()
        frame = made.render()
        made.close()
    except Exception as error:
        raise UserError(f"--render: {env}: {' '.join(str(error).split())}") from error
    if not isinstance(frame, np.ndarray):
        raise UserError(f"--render: {env} draws no pictures.")


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
