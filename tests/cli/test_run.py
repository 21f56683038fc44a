from rllib_conspec.cli.experiment import Experiment
from rllib_conspec.cli.run import RunOptions, error_line, resume_command


def test_the_resume_command_names_the_same_run():
    given = {"run": "PPO", "env": "CartPole-v1", "storage_path": "my results", "config": {"lr": 1}}
    experiment = Experiment(name="PPO_CartPole-v1", overrides=given)
    assert resume_command(experiment, RunOptions()) == (
        "rllib train --run PPO --env CartPole-v1 --storage-path 'my results' --resume"
    )
    renamed = Experiment(name="b", overrides={"name": "b"})
    assert resume_command(renamed, RunOptions(file="a.yaml", ray_address="auto")) == (
        "rllib train -f a.yaml --ray-address auto --experiment-name b --resume"
    )


def test_the_line_that_names_the_exception_is_found():
    text = """Failure # 1 (occurred at 2026-01-01)
ray::PPO.train() (pid=1)
  File "x.py", line 3, in step
    raise RuntimeError("the floor is lava")
RuntimeError: the floor is lava
  and this is its second line
RuntimeError
"""
    assert error_line(text) == "RuntimeError: the floor is lava"
    assert error_line("something odd") == "something odd"
    assert error_line("") == "unknown error"
