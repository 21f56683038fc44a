"""Whole episodes, played quickly: no connector pipeline and no per-step Python objects.

RLlib's own loop builds a batch from lists and takes actions apart again at every step, which costs
more than a small policy's forward pass. Here observations, recurrent states and actions stay arrays
over all environments of the worker. Each observation is copied once, into a block in which an
episode is one contiguous piece; episodes are views of it. Every episode that is started is finished
and returned, so that short episodes are not favoured. The exception are episodes whose environment
broke down: `info["dropped"]` marks them, and they are played anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModule
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer
from ray.rllib.utils.spaces.space_utils import clip_action, unsquash_action

from rllib_conspec.algorithm.policy import HAPPENED, LAST, EpisodePolicy

# Info of an episode's last step when the environment broke down (a Unity player that died or hung):
# the episode is truncated in its middle and must not be learned from.
DROPPED = "dropped"
Span = tuple[int, int, int, bool]  # environment, first step, end, terminated


def can_play(env: gym.vector.VectorEnv, module: RLModule) -> bool:
    """Whether `Player` fits: one of our policies, arrays as observations, next-step reset."""
    return (
        isinstance(module, EpisodePolicy)
        and isinstance(env.single_observation_space, spaces.Box)
        and env.metadata.get("autoreset_mode") == AutoresetMode.NEXT_STEP
    )


@dataclass
class _Trace:
    """What happened at one vector step, besides observations."""

    inputs: np.ndarray  # [E, A], inputs of the action distribution
    actions: np.ndarray  # [E, …]
    outputs: Mapping[str, np.ndarray]  # of the policy's core, each [E, …], most often none
    state: Mapping[str, np.ndarray]  # of its memory after the step; empty if nobody needs it
    rewards: np.ndarray  # [E]
    infos: Mapping[str, Any]  # of the vector environment, most often empty


class _Block:
    """Observations of all environments, step by step: [E, steps, *shape]."""

    def __init__(self, first: np.ndarray, steps: int) -> None:
        # Untouched memory costs nothing: more room than needed is free.
        self._frames = np.empty((len(first), steps, *first.shape[1:]), dtype=first.dtype)
        self._length = 0
        self.append(first)

    def append(self, observations: np.ndarray) -> None:
        if self._length == self._frames.shape[1]:  # only where environments lost episodes
            self._frames = np.concatenate([self._frames, np.empty_like(self._frames)], axis=1)
        self._frames[:, self._length] = observations
        self._length += 1

    def piece(self, environment: int, begin: int, end: int) -> np.ndarray:
        """Observations `begin` … `end` of one environment, both included: a view."""
        return self._frames[environment, begin : end + 1]


class Player:
    """Plays episodes in all environments of a vector environment at once."""

    def __init__(
        self,
        env: gym.vector.VectorEnv,
        module: EpisodePolicy,
        *,
        longest: int,
        normalize: bool,
        clip: bool,
        epsilon: float = 0.0,
        shown: Callable[[torch.Tensor, torch.Generator], torch.Tensor] | None = None,
    ) -> None:
        self.env = env
        self.module = module
        self.device = module.actor.weight.device
        self.dropped = 0  # episodes that their environment lost in `play`
        self._longest = longest  # steps of an episode
        # Where a core learns through pieces of an episode, each begins with what was known then.
        pieces = module.model_config.get("max_seq_len") or longest + 1
        self._keeps_states = module.is_stateful() and pieces <= longest
        self._normalize = normalize
        self._clip = clip
        self._epsilon = epsilon  # share of actions that are drawn evenly
        self._shown = shown  # observations [E, *shape] → what the policy sees of them

    def play(self, count: int, *, explore: bool, seed: int | None) -> list[SingleAgentEpisode]:
        """Exactly `count` episodes, in the order in which they were started."""
        generator = torch.Generator(self.device)
        generator.manual_seed(seed) if seed is not None else generator.seed()
        size = self.env.num_envs
        observations, before = self.env.reset(seed=seed)
        block = _Block(observations, (count // size + 2) * (self._longest + 1))
        initial = self.module.get_initial_state()
        state = {k: s.to(self.device).repeat(size, *[1] * s.dim()) for k, s in initial.items()}
        number = np.arange(size)  # which episode each environment plays; ≥ count: not wanted
        began = np.zeros(size, dtype=np.int64)
        fresh = np.zeros(size, dtype=bool)  # finished at the last step: this step resets
        started, left = size, count
        traces: list[_Trace] = []
        spans: dict[int, Span] = {}

        self.module.eval()
        with torch.inference_mode():
            while left:
                seen = torch.from_numpy(np.ascontiguousarray(observations)).to(self.device)
                if self._shown is not None:
                    seen = self._shown(seen, generator)
                inputs, state, outputs = self.module.act(seen, state)
                if fresh.any():  # this step only resets them: they begin without memory
                    for key, value in state.items():
                        value[torch.from_numpy(fresh)] = initial[key].to(value)
                actions = self._choose(inputs, explore, generator)
                step = self.env.step(self.to_env(actions))
                observations, rewards, terminated, truncated, infos = step
                if self.module.reads:
                    outputs, state = self._told(outputs, state, actions, rewards, fresh)
                kept = {name: o.cpu().numpy() for name, o in outputs.items()}
                known = {k: s.cpu().numpy() for k, s in state.items() if self._keeps_states}
                traces.append(_Trace(inputs.cpu().numpy(), actions, kept, known, rewards, infos))
                block.append(observations)
                t = len(traces)
                # The step that resets an environment belongs to no episode.
                began[fresh] = t
                over = (terminated | truncated) & ~fresh
                lost = over & _dropped(infos, size)
                self.dropped += int((lost & (number < count)).sum())
                done = over & ~lost  # lost ones keep their number: the next episode takes it
                for e in np.flatnonzero(done & (number < count)):
                    spans[int(number[e])] = (e, int(began[e]), t, bool(terminated[e]))
                    left -= 1
                number[done] = started + np.arange(done.sum())
                started += int(done.sum())
                fresh = over
        return self._cut(before, traces, block, [spans[i] for i in range(count)])

    def _told(
        self, outputs: Any, state: Any, actions: np.ndarray, rewards: np.ndarray, fresh: np.ndarray
    ) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Outputs and state with what happened at this step, for cores that read it at the next."""
        happened = self.module.happened(actions, np.asarray(rewards))
        before = happened.clone()
        before[torch.from_numpy(fresh)] = 0.0  # of a step that only resets, nothing is known
        return {**outputs, HAPPENED: happened}, {**state, LAST: before}

    def _choose(self, inputs: torch.Tensor, explore: bool, generator) -> np.ndarray:
        if isinstance(self.env.single_action_space, spaces.Discrete):
            if not explore:
                return inputs.argmax(-1).cpu().numpy()
            chances = self._chances(inputs)
            return torch.multinomial(chances, 1, generator=generator)[:, 0].cpu().numpy()
        mean, log_std = inputs.chunk(2, dim=-1)
        if not explore:
            return mean.cpu().numpy()
        noise = torch.randn(mean.shape, generator=generator, device=self.device)
        return (mean + log_std.exp() * noise).cpu().numpy()

    def _chances(self, inputs: torch.Tensor) -> torch.Tensor:
        """Of Discrete actions: the policy's, mixed with even ones."""
        policys = inputs.softmax(-1)
        if not self._epsilon:
            return policys
        return (1 - self._epsilon) * policys + self._epsilon / inputs.shape[-1]

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        """Actions in the environment's range; episodes keep what the policy chose."""
        space = self.env.single_action_space
        if isinstance(space, spaces.Discrete):
            return actions
        if self._normalize:
            return unsquash_action(actions, space)
        return clip_action(actions, space) if self._clip else actions

    def _cut(
        self, before: Mapping[str, Any], steps: list[_Trace], block: _Block, spans: list[Span]
    ) -> list[SingleAgentEpisode]:
        """The episodes in `spans`; `before` is the info of the first reset."""
        inputs = np.stack([t.inputs for t in steps])
        actions = np.stack([t.actions for t in steps])
        rewards = np.stack([t.rewards for t in steps]).astype(np.float32)
        infos = [before, *(t.infos for t in steps)]
        extra = {
            Columns.ACTION_DIST_INPUTS: inputs,
            Columns.ACTION_LOGP: self._log_probability(inputs, actions),
        }
        for name in steps[0].outputs:
            extra[name] = np.stack([t.outputs[name] for t in steps])
        states = {name: np.stack([t.state[name] for t in steps]) for name in steps[0].state}
        return [
            SingleAgentEpisode(
                observation_space=self.env.single_observation_space,
                action_space=self.env.single_action_space,
                observations=InfiniteLookbackBuffer(block.piece(e, a, b)),
                actions=InfiniteLookbackBuffer(actions[a:b, e].copy()),
                rewards=InfiniteLookbackBuffer(rewards[a:b, e].copy()),
                infos=InfiniteLookbackBuffer([_info_of(i, e) for i in infos[a : b + 1]]),
                terminated=terminated,
                truncated=not terminated,
                extra_model_outputs={
                    name: InfiniteLookbackBuffer(values[a:b, e].copy())
                    for name, values in extra.items()
                }
                | _states(states, e, a, b),
                t_started=0,
                len_lookback_buffer=0,
            )
            for e, a, b, terminated in spans
        ]

    def _log_probability(self, inputs: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Of the actions as they were drawn: what PPO's ratios are to correct."""
        if self._epsilon:
            chances = self._chances(torch.from_numpy(inputs)).numpy()
            return np.log(np.take_along_axis(chances, actions[..., None], axis=-1)[..., 0])
        distribution = self.module.get_exploration_action_dist_cls().from_logits(
            torch.from_numpy(inputs)
        )
        return distribution.logp(torch.from_numpy(actions)).numpy()


def _states(states: Mapping[str, np.ndarray], e: int, a: int, b: int) -> dict[str, Any]:
    """One episode's part of the states [T, E, …], as RLlib's connectors look for it."""
    if not states:
        return {}
    own = {name: values[a:b, e].copy() for name, values in states.items()}
    return {Columns.STATE_OUT: InfiniteLookbackBuffer(own)}


def _dropped(infos: Mapping[str, Any], size: int) -> np.ndarray:
    """Which environments lost their episode at this step: bool [size]."""
    if DROPPED not in infos:
        return np.zeros(size, dtype=bool)
    return np.asarray(infos[DROPPED], dtype=bool) & infos[f"_{DROPPED}"]


def _info_of(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    """One environment's part of a vector environment's info."""
    return {
        key: _info_of(values, index) if isinstance(values, Mapping) else values[index]
        for key, values in infos.items()
        if not key.startswith("_") and f"_{key}" in infos and infos[f"_{key}"][index]
    }
