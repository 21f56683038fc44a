"""A sweep as a process of its own: killed, resumed, and what it says in the end."""

import json
import re
import time

SWEEP = """\
small:
  run: ConSpec
  env: rllib_conspec:MultiKeyToDoor-v0
  stop: {training_iteration: 3}
  num_samples: 6
  scheduler: {asha: {grace_period: 3}}
  checkpoint_config: {checkpoint_frequency: 1}
  config:
    lr: {loguniform: [1.0e-4, 1.0e-2]}
    conspec: {intrinsic_coeff: {uniform: [0.1, 0.5]}, num_prototypes: 2, encoder_dim: 16}
    model_config: {encoder_dim: 16, core_dim: 16}
    env_config: {keys: 1}
    episodes_per_batch: 4
    num_envs_per_env_runner: 4
    num_epochs: 1
    seed: 0
"""


def test_trials_that_had_finished_when_it_was_killed_are_not_run_again(command, tmp_path):
    (tmp_path / "small.yaml").write_text(SWEEP)
    one_by_one = ("--ray-num-cpus", "1")
    first = command("train", "-f", "small.yaml", *one_by_one)
    first.wait_for("small/trial_3")
    first.process.kill()
    assert first.finish()[0] == -9
    first_ones = [
        next((tmp_path / "results" / "small").glob(f"trial_{k}_*/result.json")) for k in range(3)
    ]
    kept = [file.read_text() for file in first_ones]
    assert [len(text.splitlines()) for text in kept] == [3, 3, 3]

    code, output = command("train", "-f", "small.yaml", *one_by_one, "--resume").finish()
    assert code == 0, output
    played = [line for line in output.splitlines() if re.match(r"small/\S+  iteration", line)]
    assert played and not [line for line in played if re.match(r"small/trial_[012]", line)]
    assert [file.read_text() for file in first_ones] == kept
    files = sorted((tmp_path / "results" / "small").glob("trial_*/result.json"))
    assert len(files) == 6 and all(len(file.read_text().splitlines()) == 3 for file in files)
    names = {file.parent.name for file in files}
    best = re.search(r"Best of 6 trials: (\S+), env_runners/episode_return_mean ", output)
    assert best[1] in names
    assert re.search(r"  lr  0\.0\d+\n  conspec.intrinsic_coeff  0\.\d+\n", output)
    assert 'train       rllib train -f small.yaml --config \'{"lr": 0.0' in output
    assert "--experiment-name small_best --num-samples 1 --scheduler fifo" in output


def test_what_a_population_has_changed_survives_a_kill(command, tmp_path):
    text = SWEEP.replace("small:", "population:").replace("num_samples: 6", "num_samples: 2")
    text = text.replace("training_iteration: 3", "training_iteration: 1000")
    text = text.replace("{asha: {grace_period: 3}}", "{pbt: {perturbation_interval: 100}}")
    (tmp_path / "population.yaml").write_text(text.replace("_frequency: 1", "_frequency: 50"))
    both, soon = ("--ray-num-cpus", "2"), ("env", "TUNE_GLOBAL_CHECKPOINT_S=1")

    def rows():
        """Of every trial: (iteration, learning rate, λ)."""
        found = {}
        for file in (tmp_path / "results" / "population").glob("trial_*/result.json"):
            whole = [json.loads(x) for x in file.read_text().splitlines() if x.endswith("}")]
            found[file.parent.name] = [
                (r["training_iteration"], r["config"]["lr"], pay_of(r)) for r in whole
            ]
        return found

    def changed():
        return [name for name, seen in rows().items() if len({row[1:] for row in seen}) > 1]

    first = command("train", "-f", "population.yaml", *both, before=soon)
    end = time.monotonic() + 300
    while not changed():
        assert first.process.poll() is None and time.monotonic() < end
        time.sleep(1)  # rows are long
    first.process.kill()
    first.finish()
    (name,) = changed()
    last, *values = rows()[name][-1]

    stop = f"{{training_iteration: {last + 5}}}"
    resumed = command("train", "-f", "population.yaml", *both, "--resume", "--stop", stop)
    code, output = resumed.finish()
    assert code == 0, output
    after = [seen for iteration, *seen in rows()[name] if iteration > last]
    assert after == [values] * 5


def pay_of(row):
    return row["config"]["reward_models"]["conspec"]["intrinsic_coeff"]
