"""Runs that lose a process which they cannot do without."""

import pickle

from rllib_conspec.cli.checks import checkpoints

DEADLY = """\
import os
import signal

import gymnasium as gym
import numpy as np

from rllib_conspec.reward_models.base import RewardModel


class Corridor(gym.Env):
    observation_space = gym.spaces.Box(0, 10, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.float32([0]), {}

    def step(self, action):
        self.at += int(action)
        return np.float32([self.at]), float(self.at == 3), self.at == 3, False, {}


class Deadly(RewardModel):
    updates = 0

    def update(self, episodes):
        if self.updates == 2:
            try:
                os.close(os.open("FILE", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass  # the other one was first
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        self.updates += 1
        return {"updates": self.updates}

    def snapshot(self):
        return self.updates

    def get_state(self):
        return {"updates": self.updates}

    def set_state(self, state):
        self.updates = state["updates"]

    def load(self, snapshot):
        pass

    def reward(self, episodes):
        return [np.zeros(len(e), np.float32) for e in episodes]
"""
TWO_LEARNERS = """\
two:
  run: WholeEpisodePPO
  env: deadly:Corridor
  stop: {training_iteration: 9}
  config:
    max_episode_steps: 8
    episodes_per_batch: 4
    num_envs_per_env_runner: 4
    num_epochs: 1
    num_learners: 2
    model_config: {encoder_dim: 8, core_dim: 0}
    reward_models: {"deadly:Deadly": {}}
"""


def test_a_learner_that_is_killed_ends_the_run_in_one_line_and_a_checkpoint(command, tmp_path):
    (tmp_path / "deadly.py").write_text(DEADLY.replace("FILE", str(tmp_path / "killed")))
    (tmp_path / "two.yaml").write_text(TWO_LEARNERS)
    code, output = command("train", "-f", "two.yaml").finish()
    assert (tmp_path / "killed").exists(), output
    assert code == 1, output
    (line,) = [line for line in output.splitlines() if line.startswith("rllib: ")]
    assert line.startswith("rllib: trial_0 failed: ") and " of 2 died: " in line
    assert "Traceback" not in output
    assert "Resume with: rllib train -f two.yaml --resume" in output
    (saved,) = (tmp_path / "results" / "two" / "trial_0").glob("checkpoint_*")
    assert checkpoints.problem(saved) is None
    state = pickle.loads((saved / checkpoints.LEARNER_STATE).read_bytes())
    assert state["reward_model"]["models"] == {"deadly:Deadly": {"updates": 3}}
