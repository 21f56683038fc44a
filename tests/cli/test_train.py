"""Real runs, as processes of their own."""

import csv
import pickle
import re
import signal

from rllib_conspec.cli.checks import checkpoints

# Networks small enough for an iteration in a fraction of a second.
TINY = """\
tiny:
  run: ConSpec
  env: rllib_conspec:MultiKeyToDoor-v0
  stop: {training_iteration: 100000}
  config:
    env_config: {keys: 1}
    episodes_per_batch: 4
    episodes_per_minibatch: 2
    num_epochs: 1
    num_env_runners: 0
    num_envs_per_env_runner: 4
    model_config: {encoder: conv, encoder_dim: 16, core_dim: 16}
    conspec: {num_prototypes: 2, encoder_dim: 16, projection_dim: 16}
    seed: 0
"""


def iterations(file):
    with open(file, newline="") as stream:
        return [int(row["training_iteration"]) for row in csv.DictReader(stream)]


def test_a_run_leaves_results_and_says_what_to_do_next(sweep):
    lines = sweep.output.splitlines()
    assert lines[0] == "Checking broken, cart, then starting Ray …"
    for trial in ("trial_0_lr=0.001", "trial_1_lr=0.0001"):
        shown = [line.split("  ")[1:] for line in lines if line.startswith(f"cart/{trial}  ")]
        assert [cells[0] for cells in shown] == ["iteration 1/3", "iteration 2/3", "iteration 3/3"]
        assert all(re.search(r"return \S+ steps/s \S+", " ".join(cells)) for cells in shown)
        directory = sweep.results / "cart" / trial
        assert iterations(directory / "progress.csv") == [1, 2, 3]
        assert (directory / "result.json").exists()
        assert any(directory.glob("events.out.tfevents*"))
        assert f"cart/{trial}: 3 iterations in " in sweep.output
        newest = f"results/cart/{trial}/checkpoint_000002"
        assert f"rllib evaluate {newest} --episodes 50" in sweep.output
    assert "Results: results/cart " in sweep.output
    assert "Watch it: rllib watch results/cart" in lines
    assert len(lines) < 30, "Ray's own chatter"


def test_a_trial_that_fails_is_reported_by_its_own_error_and_saved(sweep):
    assert sweep.code == 1
    assert "rllib: trial_0 failed: RuntimeError: the floor is lava" in sweep.output
    assert "Traceback" not in sweep.output
    assert "broken: 2 iterations in " in sweep.output
    (saved,) = sweep.results.glob("broken_*/trial_0/checkpoint_*")
    assert checkpoints.problem(saved) is None and (saved / checkpoints.MANIFEST).exists()
    assert f"  checkpoint  {saved.relative_to(sweep.results.parent)}" in sweep.output
    assert "Resume with: rllib train -f sweep.yaml --resume" in sweep.output


def test_a_directory_that_exists_is_left_alone(sweep):
    assert [path.name for path in (sweep.results / "broken").iterdir()] == ["mine.txt"]
    (fresh,) = sweep.results.glob("broken_*")
    assert (fresh / "trial_0" / "error.txt").exists()


def test_interrupt_resume_evaluate(command, live, tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    # As in the background of a script, where shells have SIGINT ignored. Results are copied into
    # the directory in every second, so that the live page has something to tell soon.
    first = command(
        *("train", "-f", "tiny.yaml"),
        before=["env", "--ignore-signal=INT", "TUNE_GLOBAL_CHECKPOINT_S=1"],
    )
    first.wait_for("Watch it: rllib watch results/tiny")
    first.wait_for("iteration 3/")
    if live:
        live.gains_points()
    first.process.send_signal(signal.SIGINT)
    code, output = first.finish()
    assert code == 130, output
    assert "Resume with: rllib train -f tiny.yaml --resume" in output
    progress = tmp_path / "results" / "tiny" / "trial_0" / "progress.csv"
    done = iterations(progress)
    assert done == list(range(1, done[-1] + 1))
    saved = sorted(progress.parent.glob("checkpoint_*"))
    assert len(saved) == 1

    # It goes on with the next iteration, until `timeout` ends the whole process group.
    second = command(
        "train", "-f", "tiny.yaml", "--resume", before=["timeout", "-s", "TERM", "600"]
    )
    second.wait_for(f"Resuming {tmp_path}/results/tiny after iteration {done[-1]},")
    second.wait_for(f"iteration {done[-1] + 3}/")
    second.process.send_signal(signal.SIGTERM)  # which it handles as if its time were over
    code, output = second.finish()
    assert code == 130, output
    if live:
        live.says(f"resumed after iteration {done[-1]}")
        live.says("In checkpoint_00000")
    assert "Resume with: rllib train -f tiny.yaml --resume" in output
    assert "GCS" not in output and "Traceback" not in output
    assert len(sorted(progress.parent.glob("checkpoint_*"))) == 2
    done = iterations(progress)
    assert done == list(range(1, done[-1] + 1))

    # And once more, in the same files, up to the new end.
    end = done[-1] + 3
    again = command(
        "train", "-f", "tiny.yaml", "--resume", "--stop", f"{{training_iteration: {end}}}"
    )
    code, output = again.finish()
    assert code == 0, output
    assert f"Resuming {tmp_path}/results/tiny after iteration {done[-1]}," in output
    shown = [int(n) for n in re.findall(r"^tiny  iteration (\d+)/", output, re.MULTILINE)]
    assert shown == list(range(done[-1] + 1, end + 1))
    assert iterations(progress) == list(range(1, end + 1))
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["tiny"]

    code, output = command("evaluate", "results/tiny", "--episodes", "3").finish()
    assert code == 0, output
    assert "episodes    3" in output and "success     " in output


MINE = """\
import gymnasium as gym
import numpy as np

from rllib_conspec.reward_models.base import RewardModel


class Corridor(gym.Env):
    observation_space = gym.spaces.Box(0, 10, (1,))
    action_space = gym.spaces.Discrete(2)
    at = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.float32([0]), {}

    def step(self, action):
        self.at += int(action)
        return np.float32([self.at]), float(self.at == 3), self.at == 3, False, {}


class Fails(RewardModel):
    metrics_shown = ("updates",)
    updates = 0

    def update(self, episodes):
        if self.updates == 3:
            raise ValueError("three are enough")
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

    def hints(self):
        return ["it does not pay", f"it will fail after {4 - self.updates // 2}"]

    def reward(self, episodes):
        return [np.zeros(len(e), np.float32) for e in episodes]
"""
FAILING = """\
mine:
  run: WholeEpisodePPO
  env: mine:Corridor
  stop: {training_iteration: 9}
  config:
    max_episode_steps: 8
    episodes_per_batch: 4
    num_envs_per_env_runner: 4
    num_epochs: 1
    model_config: {encoder_dim: 8, core_dim: 0}
    reward_models: {"mine:Fails": {}}
"""


def test_environment_and_model_of_ones_own_and_a_model_that_fails(command, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "mine.yaml").write_text(FAILING)
    code, output = command("train", "-f", "mine.yaml").finish()
    assert code == 1, output
    shown = re.findall(r"iteration (\d)/9 .* updates (\d) ", output)
    assert shown == [("1", "1"), ("2", "2"), ("3", "3")]
    hints = [line for line in output.splitlines() if line.startswith("hint: ")]
    assert hints == [
        "hint: fails: it does not pay",
        "hint: fails: it will fail after 4",
        "hint: fails: it will fail after 3",
    ]
    (line,) = [line for line in output.splitlines() if line.startswith("rllib: ")]
    assert line == "rllib: trial_0 failed: ValueError: three are enough"
    assert "Traceback" not in output
    (saved,) = (tmp_path / "results" / "mine" / "trial_0").glob("checkpoint_*")
    assert checkpoints.problem(saved) is None
    state = pickle.loads((saved / checkpoints.LEARNER_STATE).read_bytes())
    assert state["reward_model"]["models"] == {"mine:Fails": {"updates": 3}}
    code, output = command("evaluate", "results/mine", "--episodes", "2").finish()
    assert code == 0, output
    assert "mine:Corridor, greedy actions" in output and "episodes    2" in output
