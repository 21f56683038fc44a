"""Rollout workers that return recorded episodes, and a learner that fetches and does not learn.

What is left is what an iteration costs beside playing, scoring and learning. Workers are
`EpisodeRunner`s; requests, reports, shares and metrics are their own. A process of each would take
330 MB: here many of them live in a few processes, and each is asked by a remote call of its own, as
if it had one.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.appo.torch.appo_torch_learner import APPOTorchLearner
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer

from rllib_conspec.algorithm.env_runner import EpisodeRunner
from rllib_conspec.algorithm.learner import WEIGHTS, EpisodePPOLearner, RewardModelLearner
from rllib_conspec.algorithm.report import RewardUpdate, episodes_at

SHAPE = (32, 32, 3)
ACTIONS = 4


class Room(gym.Env):
    """What was recorded; nobody plays in it, but for a look at its spaces."""

    observation_space = gym.spaces.Box(0, 255, SHAPE, np.uint8)
    action_space = gym.spaces.Discrete(ACTIONS)

    def __init__(self, config: dict | None = None, **_: Any) -> None:
        self._left = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._left = 100
        return np.zeros(SHAPE, np.uint8), {}

    def step(self, action):
        self._left -= 1
        return np.zeros(SHAPE, np.uint8), 0.0, self._left == 0, False, {}


@cache
def recorded(count: int, length: int) -> list[SingleAgentEpisode]:
    """`count` episodes of `length` steps."""
    rng = np.random.default_rng(0)
    spaces = {"observation_space": Room.observation_space, "action_space": Room.action_space}
    episodes = []
    for number in range(count):
        rewards = np.zeros(length, np.float32)
        rewards[-1] = number % 2
        frames = rng.integers(0, 256, (length + 1, *SHAPE), np.uint8)
        actions = rng.integers(0, ACTIONS, length)
        outputs = {
            Columns.ACTION_DIST_INPUTS: np.zeros((length, ACTIONS), np.float32),
            Columns.ACTION_LOGP: np.zeros(length, np.float32),
        }
        episodes.append(
            SingleAgentEpisode(
                **spaces,
                observations=InfiniteLookbackBuffer(frames),
                actions=InfiniteLookbackBuffer(actions),
                rewards=InfiniteLookbackBuffer(rewards),
                infos=InfiniteLookbackBuffer([{} for _ in range(length + 1)]),
                extra_model_outputs={k: InfiniteLookbackBuffer(v) for k, v in outputs.items()},
                terminated=True,
                truncated=False,
                t_started=0,
                len_lookback_buffer=0,
            )
        )
    return episodes


class RecordedRunner(EpisodeRunner):
    """Plays nothing, and scores nothing: both are shared by as many workers as there are."""

    length = 100  # steps of an episode

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.reward_model.reward = lambda episodes: [np.zeros(len(e), np.float32) for e in episodes]

    def _play_quickly(self, count: int) -> list[SingleAgentEpisode]:
        return recorded(count, self.length)

    def _sample_as_rllib(self, **kwargs: Any) -> list[SingleAgentEpisode]:
        episodes = recorded(self.num_envs, self.length)
        self._count(episodes)
        return episodes


class Fetching(RewardModelLearner):
    """Fetches every episode that it is given, and learns nothing from it."""

    weights_are = "_rl_module_state_after_update"  # where RLlib's asynchronous drivers look

    def update(self, training_data: TrainingData, return_state: bool = False, **_: Any) -> Any:
        training_data.solve_refs()
        self._weights_seq_no += 1
        return {self.weights_are: self._for_workers()} if return_state else {}

    def _for_workers(self) -> dict[str, Any]:
        state = self.get_state(components=COMPONENT_RL_MODULE, inference_only=True)
        return state | {COMPONENT_RL_MODULE: ray.put(state[COMPONENT_RL_MODULE])}

    def update_reward_model(self, chosen: Any) -> RewardUpdate:
        start = time.perf_counter()
        episodes_at(chosen)
        self.reward_model.version += 1
        return RewardUpdate({}, [], self.reward_model.snapshot(), time.perf_counter() - start)

    def pay(self) -> None:
        """All prototypes are part of the snapshots from now on."""
        self.reward_model.models["conspec"].learner.met[:] = True


class FetchingPPO(Fetching, EpisodePPOLearner):
    """With the policy's weights in its answers, as synchronous PPO has them."""

    weights_are = WEIGHTS

    def _for_workers(self) -> dict[str, Any]:
        return self.weights()


class FetchingAPPO(Fetching, APPOTorchLearner):
    """Without the threads of RLlib's own, which hold updates back until 8 are done."""


# --- many workers in a few processes --------------------------------------------------------------


@ray.remote(num_cpus=0)
class Host:
    """A process with workers in it."""

    def __init__(self) -> None:
        self._workers: dict[int, EpisodeRunner] = {}

    def seat(self, number: int, config: Any, kwargs: dict[str, Any]) -> None:
        config = ray.get(config) if isinstance(config, ray.ObjectRef) else config
        self._workers[number] = RecordedRunner(config=config, **kwargs)

    def apply(self, number: int, func: Any, *args: Any, **kwargs: Any) -> Any:
        return self._workers[number].apply(func, *args, **kwargs)


class Seat:
    """One worker of a host: what RLlib takes for the handle of an actor."""

    def __init__(self, host: Any, number: int) -> None:
        self.apply = _Call(host, number)


class _Call:
    def __init__(self, host: Any, number: int) -> None:
        self._host, self._number = host, number

    def remote(self, func: Any, *args: Any, **kwargs: Any) -> ray.ObjectRef:
        return self._host.apply.remote(self._number, func, *args, **kwargs)


class Seats(EnvRunnerGroup):
    """A group whose remote workers sit in these hosts."""

    hosts: list[Any] = []

    def _make_worker(self, *, worker_index: int, config: Any, **kwargs: Any) -> Any:
        if worker_index == 0:
            return super()._make_worker(worker_index=0, config=config, **kwargs)
        host = self.hosts[worker_index % len(self.hosts)]
        own = {"worker_index": worker_index, "num_workers": kwargs["num_workers"]}
        own["env_creator"] = None
        ray.get(host.seat.remote(worker_index, config, own))
        return Seat(host, worker_index)

    def use(self, count: int) -> None:
        """Let only the first `count` workers take part."""
        manager = self._worker_manager
        # Nobody leaves with a request that is not answered.
        manager.fetch_ready_async_reqs(timeout_seconds=None)
        if not hasattr(self, "_all"):
            self._all = manager._actors, manager._remote_actor_states
        manager._actors, manager._remote_actor_states = (
            {i: own[i] for i in range(1, count + 1)} for own in self._all
        )

    def stop(self) -> None:
        """The hosts go on; whoever sits there next takes their seats."""
