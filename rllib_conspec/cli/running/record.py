"""`rllib record`: play episodes and keep the successful ones in a file, as demonstrations.

In this process, one game at a time, without Ray. Who plays is one of `players`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import gymnasium as gym

from rllib_conspec import environments
from rllib_conspec.cli.running import players
from rllib_conspec.episodes import Episode, PackedEpisode
from rllib_conspec.errors import OptionError, UserError
from rllib_conspec.recordings import Origin, Recording, save
from rllib_conspec.success import RELATIVE, success_function

TOLD_EVERY = 30.0  # seconds between lines while there is nothing new to tell


def record(
    out: str,
    *,
    file: str | None,
    env: str | None,
    env_config: str | None,
    policy: str | None,
    actions: tuple[str, ...],
    keyboard: bool,
    repeat: int,
    only: tuple[str, ...],
    episodes: int,
    all_episodes: bool,
    max_steps: int | None,
    seed: int,
    verbose: int,
) -> None:
    """Play, keep and write; see `rllib record --help` for the arguments."""
    if sum((policy is not None, bool(actions), keyboard)) > 1:
        raise UserError("record: give one of --policy, --actions and --keyboard.")
    if only and (policy is not None or actions or keyboard):
        raise UserError("record: --only is for random actions.")
    task = Task.of(file, env, env_config, policy)
    if not Path(out).absolute().parent.is_dir():
        raise UserError(f"record: {Path(out).absolute().parent} is not a directory.")
    judge = success_function(task.success)
    if task.success == RELATIVE and not all_episodes:
        raise UserError(
            "record: with success top_k no episode succeeds by itself; keep all with --all."
        )
    with contextlib.closing(task.make()) as game:
        player = _player(task, game, policy, actions, keyboard, repeat, only, seed)
        goal = Goal(len(actions) or episodes, len(actions) or None, max_steps)
        session = Session(goal, judge, all_episodes, talkative=bool(actions) or keyboard)
        with contextlib.closing(player):
            session.run(player, game, seed)
    if not session.kept:
        raise UserError(
            f"record: no success in {session.played} episodes ({session.steps:,} steps); {out} is "
            "not written."
        )
    facts = task.facts
    origin = Origin.of(facts.plays, facts.version, facts.observation_space, facts.action_space)
    save(out, Recording(origin, player.name, session.steps, tuple(session.kept)))
    click.echo(
        f"{out}: {len(session.kept)} of {session.played} episodes of {origin.plays}, "
        f"{session.steps:,} steps, {Path(out).stat().st_size / 1e6:.1f} MB"
    )


@dataclass(frozen=True)
class Goal:
    """When to stop."""

    keep: int
    episodes: int | None  # at most so many are played
    steps: int | None  # and at most so many steps, but for the last episode

    def reached(self, session: Session) -> bool:
        return (
            len(session.kept) >= self.keep
            or (self.episodes is not None and session.played >= self.episodes)
            or (self.steps is not None and session.steps >= self.steps)
        )


class Session:
    """Episodes that are played, judged and kept."""

    def __init__(
        self,
        goal: Goal,
        judge: Callable[[Episode], bool | None],
        keep_all: bool,
        *,
        talkative: bool,
    ) -> None:
        self.kept: list[PackedEpisode] = []
        self.played = 0
        self.steps = 0
        self._goal, self._judge, self._keep_all = goal, judge, keep_all
        self._talkative = talkative
        self._told = time.monotonic()

    def run(self, player: players.Player, game: gym.Env, seed: int) -> None:
        """Until the goal is reached; Ctrl-C, or a person who has had enough, ends it before."""
        with contextlib.suppress(KeyboardInterrupt):
            while not self._goal.reached(self):
                # Every episode has a seed of its own: it can be played again by itself.
                self._take(player.play(game, seed + self.played))

    def _take(self, episode: Episode) -> None:
        self.played += 1
        self.steps += len(episode)
        episode = episode.judged(self._judge(episode))
        good = self._keep_all or bool(episode.success)
        if good:
            self.kept.append(episode.packed())
        if good or self._talkative or time.monotonic() - self._told > TOLD_EVERY:
            self._told = time.monotonic()
            click.echo(
                f"episode {self.played}: return {episode.rewards.sum():g}, {len(episode)} steps, "
                f"{'kept' if good else 'no success'} ({len(self.kept)} of {self._goal.keep}, "
                f"{self.steps:,} steps)"
            )


def _player(
    task: Task,
    game: gym.Env,
    policy: str | None,
    actions: tuple[str, ...],
    keyboard: bool,
    repeat: int,
    only: tuple[str, ...],
    seed: int,
) -> players.Player:
    if policy is not None:
        return players.PolicyPlayer(policy, task.make)
    if actions:
        return players.ListPlayer(actions, game)
    if keyboard:
        return players.KeyboardPlayer(game)
    return players.RandomPlayer(game.action_space, seed, repeat, players.numbers_of(only, game))


class Task:
    """What is played, and what counts as success in it."""

    def __init__(self, env: Any, env_config: dict[str, Any], **config: Any) -> None:
        self.env, self.env_config = env, env_config
        self.success = config["success"]
        self._key = config["observation_key"]
        try:
            self.facts = environments.look(
                env,
                env_config,
                max_episode_steps=config["max_episode_steps"],
                observation_key=self._key,
            )
        except OptionError as error:
            raise UserError(f"record: {error}") from error

    def make(self) -> gym.Env:
        return environments.make_single(
            self.env, self.env_config, self.facts, observation_key=self._key
        )

    @classmethod
    def of(
        cls, file: str | None, env: str | None, env_config: str | None, policy: str | None
    ) -> Task:
        """From an experiment file, a checkpoint, or an environment's name; what is said besides is
        laid over it.
        """
        from rllib_conspec.cli.checks.experiment import parse_mapping

        found: dict[str, Any] = dict(
            env=None,
            env_config={},
            success="sparse",
            observation_key=None,
            max_episode_steps=None,
        )
        for config in _configs(file, policy):
            found |= {name: getattr(config, name, found[name]) for name in found}
        if env is not None:
            found |= {"env": env, "env_config": {}}
        if found["env"] is None:
            raise UserError("record: say what to play: -f FILE, --policy CHECKPOINT or --env ID.")
        if env_config is not None:
            given = parse_mapping(env_config, "--env-config")
            found["env_config"] = {**found["env_config"], **given}
        return cls(found.pop("env"), found.pop("env_config"), **found)


def _configs(file: str | None, policy: str | None) -> Iterator[Any]:
    if policy is not None:
        from rllib_conspec.cli.checks import checkpoints

        yield checkpoints.read(checkpoints.find(policy))[1]
    if file is not None:
        from rllib_conspec.cli.checks.algorithms import find_algorithm
        from rllib_conspec.cli.checks.experiment import load_experiments
        from rllib_conspec.cli.checks.validate import build_config

        experiment, *others = load_experiments(file, {})
        if others:
            raise UserError(f"record: {file} has {1 + len(others)} experiments; give one of them.")
        default = experiment.algorithm_config or find_algorithm(experiment.run).get_default_config()
        # Without reward models: what they start from may be what is to be recorded here.
        left_out = ("reward_models", *getattr(default, "short_forms", ()))
        settings = {k: v for k, v in experiment.config.items() if k not in left_out}
        yield build_config(default, experiment.env, settings)
