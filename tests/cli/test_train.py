"""Real runs, as processes of their own."""

import csv
import re
import signal

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
    model_config: {encoder: conv, encoder_dim: 16, gru_dim: 16}
    conspec: {num_prototypes: 2, encoder_dim: 16, projection_dim: 16}
    seed: 0
"""


def iterations(file):
    with open(file, newline="") as stream:
        return [int(row["training_iteration"]) for row in csv.DictReader(stream)]


def test_a_run_leaves_results_and_says_what_to_do_next(cart_run):
    directory, output = cart_run
    lines = output.splitlines()
    assert lines[0] == "Checking cart, then starting Ray …"
    assert [line.split("  ")[1] for line in lines[1:4]] == [f"iteration {i}/3" for i in (1, 2, 3)]
    assert all("return " in line and "steps/s " in line for line in lines[1:4])
    trial = directory / "results" / "cart" / "trial_0"
    assert iterations(trial / "progress.csv") == [1, 2, 3]
    assert (trial / "result.json").exists() and any(trial.glob("events.out.tfevents*"))
    checkpoint = "results/cart/trial_0/checkpoint_000002"
    assert f"rllib evaluate {checkpoint} --episodes 50" in output
    assert "Results: results/cart " in output
    assert len(lines) < 12, "Ray's own chatter"


def test_interrupt_resume_evaluate(command, tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    first = command("train", "-f", "tiny.yaml")
    first.wait_for("iteration 3/")
    first.process.send_signal(signal.SIGINT)
    code, output = first.finish()
    assert code == 130, output
    assert "Resume with: rllib train -f tiny.yaml --resume" in output
    progress = tmp_path / "results" / "tiny" / "trial_0" / "progress.csv"
    done = iterations(progress)
    assert done == list(range(1, done[-1] + 1))
    saved = sorted(progress.parent.glob("checkpoint_*"))
    assert len(saved) == 1

    # It goes on with the next iteration, in the same files, up to the new end.
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


def test_two_experiments_a_grid_and_a_failing_trial(command, tmp_path):
    """One file: a trial whose environment breaks, then an experiment of two trials."""
    (tmp_path / "both.yaml").write_text(
        """\
broken:
  run: PPO
  env: breaks:Breaks-v0
  config: {num_env_runners: 0, train_batch_size_per_learner: 128, num_epochs: 1}
sweep:
  run: PPO
  env: CartPole-v1
  stop: {training_iteration: 1}
  config:
    num_env_runners: 0
    train_batch_size_per_learner: 128
    num_epochs: 1
    lr: {grid_search: [0.1, 0.01]}
"""
    )
    (tmp_path / "breaks.py").write_text(
        """\
import gymnasium as gym


class Breaks(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        raise RuntimeError("the floor is lava")


gym.register("Breaks-v0", Breaks)
"""
    )
    results = tmp_path / "results" / "sweep"
    results.mkdir(parents=True)
    (results / "mine.txt").write_text("keep")
    code, output = command("train", "-f", "both.yaml", "--ray-num-cpus", "2").finish()
    assert code == 1, output
    assert "rllib: trial_0 failed: RuntimeError: the floor is lava" in output
    assert "Traceback" not in output
    # The name was taken: nothing there was touched, the run has a directory of its own.
    assert [path.name for path in results.iterdir()] == ["mine.txt"]
    (fresh,) = (tmp_path / "results").glob("sweep_*")
    assert {path.name for path in fresh.glob("trial_*")} == {"trial_0_lr=0.1", "trial_1_lr=0.01"}
    assert "sweep/trial_1_lr=0.01: 1 iterations" in output
