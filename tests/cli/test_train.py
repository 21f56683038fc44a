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


def test_a_run_leaves_results_and_says_what_to_do_next(sweep):
    lines = sweep.output.splitlines()
    assert lines[0] == "Checking broken, cart, then starting Ray …"
    for trial in ("trial_0_lr=0.0010", "trial_1_lr=0.0001"):
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
    assert len(lines) < 22, "Ray's own chatter"


def test_a_trial_that_fails_is_reported_by_its_own_error(sweep):
    assert sweep.code == 1
    assert "rllib: trial_0 failed: RuntimeError: the floor is lava" in sweep.output
    assert "Traceback" not in sweep.output


def test_a_directory_that_exists_is_left_alone(sweep):
    assert [path.name for path in (sweep.results / "broken").iterdir()] == ["mine.txt"]
    (fresh,) = sweep.results.glob("broken_*")
    assert (fresh / "trial_0" / "error.txt").exists()


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
