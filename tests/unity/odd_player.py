"""A player for the tests, good or bad as its first argument says."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

import grpc
import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rllib_conspec.tasks.keys.vector import MultiKeyToDoorVectorEnv
from rllib_conspec.unity.messages import METHOD, UnityMessage
from rllib_conspec.unity.player.serving import Service

ACTION_SPACES = {
    "continuous": spaces.Box(-1, 1, (2,), np.float32),
    "scaled": spaces.Box(np.float32([0, -2]), np.float32([10, 2]), (2,), np.float32),
    "branches": spaces.MultiDiscrete([3, 2]),
    "discrete": spaces.Discrete(5),
}


class Machine(VectorEnv):
    """Shows its last action and its clock; environment i is truncated after ``4 + i`` steps.

    The reward is the clock. Observations are a picture and a vector, which holds the action.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
    critical_events = ("rang",)

    def __init__(self, num_envs: int, actions: str):
        self.num_envs = num_envs
        self.single_action_space = ACTION_SPACES[actions]
        self.single_observation_space = spaces.Dict(
            camera=spaces.Box(0, 255, (6, 5, 3), np.uint8),
            gauge=spaces.Box(-np.inf, np.inf, (3,), np.float32),
        )
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._clock = np.zeros(num_envs, int)
        self._over = np.zeros(num_envs, bool)
        self._shown = np.zeros((num_envs, 2))

    def reset(self, *, seed=None, options=None):
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        self._clock[mask], self._over[mask], self._shown[mask] = 0, False, 0
        return self._observe(), {}

    def step(self, actions):
        self._clock = np.where(self._over, 0, self._clock + 1)
        self._shown = np.where(self._over[:, None], 0, np.reshape(actions, (self.num_envs, -1)))
        truncated = self._clock == 4 + np.arange(self.num_envs)
        rang = self._clock == 2
        infos = {"rang": self._clock * rang, "_rang": rang} if rang.any() else {}
        self._over = truncated.copy()
        return self._observe(), self._clock * 1.0, np.zeros_like(truncated), truncated, infos

    def _observe(self):
        pixels = np.arange(90, dtype=np.uint8).reshape(6, 5, 3)
        camera = pixels + 10 * self._clock[:, None, None, None].astype(np.uint8)
        gauge = np.zeros((self.num_envs, 3), np.float32)
        gauge[:, 0], gauge[:, 1:] = self._clock, self._shown
        return {"camera": camera, "gauge": gauge}


class Deaf(Service):
    """Does as Unity does: knows nothing of our side channel."""

    def _hear(self, data):
        super()._hear(data)
        self._greeted = False


class EndsAlone(Deaf):
    """Sends the end of episodes first, and what the others wait for with the next message."""

    _held_back = None

    def answer(self, command):
        if self._held_back is not None:
            message, self._held_back = self._held_back, None
            return message
        message = super().answer(command)
        agents = message.unity_output.rl_output.agentInfos[self._name].value
        if any(agent.done for agent in agents):
            self._held_back = UnityMessage.FromString(message.SerializeToString())
            later = self._held_back.unity_output.rl_output.agentInfos[self._name].value
            for i in reversed(range(len(agents))):
                del (later if agents[i].done else agents)[i]
        return message


def leave_in_handshake(port: int) -> None:
    """Say hello and go, before the trainer's second message can be answered."""
    service = Service(lambda _: MultiKeyToDoorVectorEnv(1), "Rude")
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    call = channel.unary_unary(
        "/{}/{}".format(*METHOD), UnityMessage.SerializeToString, UnityMessage.FromString
    )
    call(service._introduction(), wait_for_ready=True)
    print("I do not like this trainer", file=sys.stderr, flush=True)
    os._exit(3)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("--mlagents-port", type=int)
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--actions", default="continuous")
    parser.add_argument("--observations", default="float")
    parser.add_argument("--first", action="store_true", help="channels first")
    parser.add_argument("--after", type=int, default=1, help="how often `flaky` leaves")
    parser.add_argument("--memory", type=Path, help="where `flaky` counts")
    options, _ = parser.parse_known_args()
    kind, port = options.kind, options.mlagents_port

    def keys(parameters):
        return MultiKeyToDoorVectorEnv(options.agents, keys=int(parameters.get("keys", 1)))

    def machine(parameters):
        return Machine(options.agents, options.actions)

    looks = {"observations": options.observations, "channels_first": options.first}
    if kind == "flaky":
        before = int(options.memory.read_text() or 0) if options.memory.exists() else 0
        options.memory.write_text(str(before + 1))
        kind = "leaves" if before < options.after else "keys"
    if kind == "keys":
        Service(keys, "Keys", **looks, parameters={"keys": ()}).run(port)
    elif kind == "machine":
        Service(machine, "Machine", **looks).run(port)
    elif kind == "deaf":
        Deaf(machine, "Machine", **looks).run(port)
    elif kind == "alone":
        EndsAlone(machine, "Machine", **looks).run(port)
    elif kind == "version":
        Service(keys, "Keys", version="2.0.0").run(port)
    elif kind == "leaves":
        leave_in_handshake(port)
    elif kind == "ignores":  # neither speaks nor goes, not even when it is asked to
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    else:
        raise gym.error.Error(f"no player of kind {kind!r}")


if __name__ == "__main__":
    main()
