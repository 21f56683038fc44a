"""Who plays the episodes that are recorded: chance, a policy, a list of actions, a person."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from rllib_conspec.episodes import Episode
from rllib_conspec.errors import UserError, did_you_mean


class Player:
    """Chooses actions, one episode after the other."""

    name = ""  # in the recording

    def play(self, game: gym.Env, seed: int) -> Episode:
        """One whole episode."""
        observation, info = game.reset(seed=seed)
        self.begin(observation)
        observations, actions, rewards = [observation], [], []
        over = terminated = False
        while not over:
            action = self.choose(observation)
            observation, reward, terminated, truncated, info = game.step(action)
            observations.append(observation)
            actions.append(action)
            rewards.append(reward)
            over = terminated or truncated
        return Episode(
            np.stack(observations),
            np.array(actions),
            np.array(rewards, np.float32),
            terminated=bool(terminated),
            info=info,
            seed=seed,
        )

    def close(self) -> None:
        """Nothing more is to be played."""

    def begin(self, observation: Any) -> None:
        """A new episode, with its first observation."""

    def choose(self, observation: Any) -> Any:
        raise NotImplementedError


class RandomPlayer(Player):
    """Every action as likely as any other, each for 1 to `longest` steps: who changes his mind at
    every step gets nowhere. Where `only` some are allowed, it is one of these.
    """

    def __init__(
        self, actions: spaces.Space, seed: int, longest: int = 1, only: Sequence[int] = ()
    ) -> None:
        self.name = "random" if longest == 1 else f"random, actions of 1 to {longest} steps"
        if only:
            self.name += f", only {', '.join(map(str, only))}"
        self._actions, self._longest = actions, longest
        self._only = list(only)
        self._rng = np.random.default_rng(seed)
        self._action, self._left = None, 0
        actions.seed(seed)

    def begin(self, observation: Any) -> None:
        self._left = 0

    def choose(self, observation: Any) -> Any:
        if self._left == 0:
            some = self._only
            self._action = self._rng.choice(some) if some else self._actions.sample()
            self._left = int(self._rng.integers(1, self._longest + 1))
        self._left -= 1
        return self._action


class PolicyPlayer(Player):
    """The policy of a checkpoint, of any algorithm; it samples its actions."""

    def __init__(self, checkpoint: str, make: Callable[[], gym.Env]) -> None:
        from rllib_conspec.cli.checks import checkpoints
        from rllib_conspec.cli.running.cluster import quiet_loggers
        from rllib_conspec.cli.running.evaluate import build_runner

        quiet_loggers(0)
        path = checkpoints.find(checkpoint)
        self.name = f"policy {path.name}"
        config = checkpoints.read(path)[1].copy(copy_frozen=False)
        self._runner = build_runner(config, path, 0, make)

    def play(self, game: gym.Env, seed: int) -> Episode:
        """By RLlib's own runner, in an environment of its own: connectors are the policy's."""
        from rllib_conspec.algorithm.report import joined

        self._runner._seed = seed  # RLlib seeds the environment for every call
        (played,) = self._runner.sample(num_episodes=1, explore=True)
        return replace(joined([played.to_numpy()], lambda _: None, ()), outputs={}, seed=seed)


class ListPlayer(Player):
    """Actions from files, one episode each; whoever has no more waits (action 0).

    Actions stand one after the other, by number or name (`3`, `RIGHT`), with `*12` for twelve
    times the same; what follows a # is a remark.
    """

    name = "list of actions"

    def __init__(self, files: Sequence[str], game: gym.Env) -> None:
        if not isinstance(game.action_space, spaces.Discrete):
            raise UserError("record: --actions needs an environment with Discrete actions.")
        names = action_names(game)
        self._lists = [read_actions(file, names) for file in files]
        self._episode = -1

    def begin(self, observation: Any) -> None:
        self._episode += 1
        self._left = iter(self._lists[self._episode])

    def choose(self, observation: Any) -> Any:
        return next(self._left, 0)


def action_names(game: gym.Env) -> list[str]:
    """What actions are called: as the environment says, or their numbers."""
    count = int(game.action_space.n)
    if game.has_wrapper_attr("action_names"):
        names = [str(name) for name in game.get_wrapper_attr("action_names")]
        if len(names) == count:
            return names
    return [str(number) for number in range(count)]


def numbers_of(actions: Sequence[str], game: gym.Env) -> list[int]:
    """The numbers of actions that are given by number or name."""
    if not actions:
        return []
    if not isinstance(game.action_space, spaces.Discrete):
        raise UserError("record: --only needs an environment with Discrete actions.")
    names = action_names(game)
    known = {name.upper(): i for i, name in enumerate(names)}
    known |= {str(i): i for i in range(len(names))}
    for action in actions:
        if action.upper() not in known:
            raise UserError(
                f"record: --only: unknown action {action!r}; they are {', '.join(names)}."
                + did_you_mean(action.upper(), names)
            )
    return [known[action.upper()] for action in actions]


def read_actions(file: str, names: Sequence[str]) -> list[int]:
    """The actions of a file, by number."""
    path = Path(file)
    if not path.is_file():
        raise UserError(f"record: there is no file {file}.")
    numbers = {name.upper(): i for i, name in enumerate(names)}
    numbers |= {str(i): i for i in range(len(names))}
    actions: list[int] = []
    for line, text in enumerate(path.read_text().splitlines(), 1):
        for word in text.partition("#")[0].split():
            said = re.fullmatch(r"([A-Za-z0-9_]+)(?:\*(\d+))?", word)
            if said is None or said[1].upper() not in numbers:
                hint = did_you_mean(said[1].upper(), names) if said else ""
                raise UserError(
                    f"record: {file}, line {line}: unknown action {word!r}; they are "
                    f"{', '.join(names)}.{hint}"
                )
            actions += [numbers[said[1].upper()]] * int(said[2] or 1)
    return actions


class KeyboardPlayer(Player):
    """A person at the keyboard: see `keyboard`."""

    name = "person"

    def __init__(self, game: gym.Env) -> None:
        from rllib_conspec.cli.running.keyboard import Keyboard

        if not isinstance(game.action_space, spaces.Discrete):
            raise UserError("record: --keyboard needs an environment with Discrete actions.")
        self._keyboard = Keyboard(action_names(game))

    def close(self) -> None:
        self._keyboard.close()

    def begin(self, observation: Any) -> None:
        self._keyboard.show(observation)

    def choose(self, observation: Any) -> Any:
        return self._keyboard.choose(observation)
