"""Runs that lose a process which they cannot do without."""

import json
import pickle
import re
from dataclasses import dataclass
from pathlib import Path

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
NAME:
  run: WholeEpisodePPO
  env: NAME:Corridor
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
RAISES = 'raise ArithmeticError("nothing adds up")'
# Name → what ends a learner, and what the file says.
ENDS = {
    "update": (KILLED, 'reward_models: {"update:Deadly": {}}'),
    "killed": (KILLED, 'auxiliary: {"killed:Fatal": {}}'),
    "raises": (RAISES, 'auxiliary: {"raises:Fatal": {}}'),
}
BOUND = 60  # seconds from there until what is left is saved; 4 to 7 on a busy machine


@dataclass
class Failed:
    """A run of two learners of which one has ended."""

    line: str  # that the user reads
    state: dict  # of the learner that is left, as it was saved
    trial: Path


@pytest.fixture(scope="module")
def failed(finished, tmp_path_factory):
    """All of them, one after the other, by one command."""
    here = tmp_path_factory.mktemp("failed")
    files = []
    for name, (end, setting) in ENDS.items():
        deadly = DEADLY.replace("FILE", str(here / f"{name}.ended")).replace("END", end)
        (here / f"{name}.py").write_text(deadly)
        files.append(TWO_LEARNERS.replace("NAME", name).replace("SETTING", setting))
    (here / "two.yaml").write_text("".join(files))
    code, output = finished("train", "-f", "two.yaml", cwd=here)
    assert code == 1, output
    assert "Traceback" not in output
    assert output.count("Resume with: rllib train -f two.yaml --resume") == len(ENDS)
    lines = re.findall("^rllib: .*$", output, re.MULTILINE)
    assert len(lines) == len(ENDS), output

    def found(name, line):
        trial = here / "results" / name / "trial_0"
        (saved,) = trial.glob("checkpoint_*")
        assert checkpoints.problem(saved) is None
        state = saved / checkpoints.LEARNER_STATE
        assert state.stat().st_mtime - (here / f"{name}.ended").stat().st_mtime < BOUND
        return Failed(line, pickle.loads(state.read_bytes()), trial)

    return {name: found(name, line) for name, line in zip(ENDS, lines, strict=True)}


def test_a_learner_that_is_killed_ends_the_run_in_one_line_and_a_checkpoint(failed):
    run = failed["update"]
    assert run.line.startswith("rllib: trial_0 failed: ") and " of 2 died: " in run.line
    assert run.state["reward_model"]["models"] == {"update:Deadly": {"updates": 3}}


@pytest.mark.parametrize(
    ("name", "told"), [("killed", " of 2 died: "), ("raises", "nothing adds up")]
)
def test_a_learner_that_ends_in_mid_update_does_not_leave_the_other_waiting(failed, name, told):
    """What the other one had learned in that update is taken back, and it is saved."""
    run = failed[name]
    assert run.line.startswith("rllib: trial_0 failed: ") and told in run.line
    last = json.loads((run.trial / "result.json").read_text().splitlines()[-1])
    shown = last["learners"]["default_policy"][f"{name}:Fatal_steps"]
    steps = int(run.state["auxiliary"][f"{name}:Fatal"]["steps"])
    assert 0 < steps == shown + 1  # counted before the last one
