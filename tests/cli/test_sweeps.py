"""A sweep as a process of its own: killed, resumed, and what it says in the end."""

import re

SWEEP = """\
small:
  run: ConSpec
  env: rllib_conspec:MultiKeyToDoor-v0
  stop: {training_iteration: 3}
  num_samples: 3
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
    first.wait_for("small/trial_1")
    first.process.kill()
    assert first.finish()[0] == -9
    (finished,) = (tmp_path / "results" / "small").glob("trial_0_*/result.json")
    kept = finished.read_text()
    assert len(kept.splitlines()) == 3

    code, output = command("train", "-f", "small.yaml", *one_by_one, "--resume").finish()
    assert code == 0, output
    played = [line for line in output.splitlines() if re.match(r"small/\S+  iteration", line)]
    assert played and not [line for line in played if line.startswith("small/trial_0")]
    assert finished.read_text() == kept
    files = sorted((tmp_path / "results" / "small").glob("trial_*/result.json"))
    assert len(files) == 3 and all(len(file.read_text().splitlines()) == 3 for file in files)
    names = {file.parent.name for file in files}
    best = re.search(r"Best of 3 trials: (\S+), env_runners/episode_return_mean ", output)
    assert best[1] in names
    assert re.search(r"  lr  0\.0\d+\n  conspec.intrinsic_coeff  0\.\d+\n", output)
    assert 'train       rllib train -f small.yaml --config \'{"lr": 0.0' in output
    assert "--experiment-name small_best --num-samples 1 --scheduler fifo" in output
