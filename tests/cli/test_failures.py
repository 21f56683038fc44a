"""Runs that lose a process which they cannot do without."""

import json
import pickle
import time

import pytest

from rllib_conspec.cli.checks import checkpoints

DEADLY = """\
import os
import signal

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from rllib_conspec.auxiliary.base import AuxiliaryLoss
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


def first():  # whether this process is the first one to ask
    try:
        os.close(os.open("FILE", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


class Deadly(RewardModel):
    updates = 0

    def update(self, episodes):
        if self.updates == 2 and first():
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


class Fatal(AuxiliaryLoss):
    def __init__(self, options, encoder):
        super().__init__(options, encoder)
        self.own = nn.Parameter(torch.zeros(()))
        self.register_buffer("steps", torch.zeros(()))
        self.calls = 0  # not taken back with an update

    def loss(self, batch):
        self.calls += 1
        if self.calls == 14 and first():  # the other one waits for this one's gradients
            END
        return self.own**2

    def metrics(self):
        return {"steps": self.steps.clone()}

    def after_step(self):
        self.steps += 1
"""
TWO_LEARNERS = """\
two:
  run: WholeEpisodePPO
  env: deadly:Corridor
  stop: {training_iteration: 9}
  config:
    max_episode_steps: 8
    episodes_per_batch: 4
    episodes_per_minibatch: 1
    num_envs_per_env_runner: 4
    num_epochs: 2
    num_learners: 2
    model_config: {encoder_dim: 8, core_dim: 8}
    SETTING
"""
KILLED = "os.kill(os.getpid(), signal.SIGKILL)"
BOUND = 60  # seconds from there to the end of the command; 4 to 7 on a busy machine
RAISES = 'raise ArithmeticError("nothing adds up")'


@pytest.fixture
def failed(command, tmp_path):
    """Run two learners of which one ends; the line that the user reads, and the learner's saved
    state.
    """

    def run(setting, end=KILLED):
        deadly = DEADLY.replace("FILE", str(tmp_path / "ended")).replace("END", end)
        (tmp_path / "deadly.py").write_text(deadly)
        (tmp_path / "two.yaml").write_text(TWO_LEARNERS.replace("SETTING", setting))
        code, output = command("train", "-f", "two.yaml").finish()
        assert (tmp_path / "ended").exists(), output
        assert time.time() - (tmp_path / "ended").stat().st_mtime < BOUND
        assert code == 1, output
        (line,) = [line for line in output.splitlines() if line.startswith("rllib: ")]
        assert "Traceback" not in output
        assert "Resume with: rllib train -f two.yaml --resume" in output
        (saved,) = (tmp_path / "results" / "two" / "trial_0").glob("checkpoint_*")
        assert checkpoints.problem(saved) is None
        return line, pickle.loads((saved / checkpoints.LEARNER_STATE).read_bytes())

    return run


def test_a_learner_that_is_killed_ends_the_run_in_one_line_and_a_checkpoint(failed):
    line, state = failed('reward_models: {"deadly:Deadly": {}}')
    assert line.startswith("rllib: trial_0 failed: ") and " of 2 died: " in line
    assert state["reward_model"]["models"] == {"deadly:Deadly": {"updates": 3}}


@pytest.mark.parametrize(
    ("end", "told"),
    [(KILLED, " of 2 died: "), (RAISES, "nothing adds up")],
    ids=["killed", "raises"],
)
def test_a_learner_that_ends_in_mid_update_does_not_leave_the_other_waiting(
    failed, tmp_path, end, told
):
    """What the other one had learned in that update is taken back, and it is saved."""
    line, state = failed('auxiliary: {"deadly:Fatal": {}}', end)
    assert line.startswith("rllib: trial_0 failed: ") and told in line
    results = (tmp_path / "results" / "two" / "trial_0" / "result.json").read_text()
    last = json.loads(results.splitlines()[-1])["learners"]["default_policy"]
    steps = int(state["auxiliary"]["deadly:Fatal"]["steps"])
    assert 0 < steps == last["deadly:Fatal_steps"] + 1  # counted before the last one
