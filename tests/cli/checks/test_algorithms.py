import pytest
from ray.rllib.algorithms.ppo import PPO
from ray.tune.registry import register_trainable

from rllib_conspec import ConSpec, WholeEpisodePPO
from rllib_conspec.cli.checks.algorithms import find_algorithm, our_algorithms
from rllib_conspec.cli.checks.experiment import Experiment
from rllib_conspec.cli.checks.validate import validate
from rllib_conspec.errors import OptionError


def test_names_classes_and_what_the_user_registered():
    assert find_algorithm("PPO") is find_algorithm(PPO) is PPO
    assert find_algorithm("ConSpec") is ConSpec

    class Mine(PPO):
        pass

    register_trainable("Mine", Mine)
    assert find_algorithm("Mine") is Mine
    ours = our_algorithms()
    assert ours["WholeEpisodePPO"] is WholeEpisodePPO
    others = {f"ConSpec{base}" for base in ("", "APPO", "IMPALA", "DQN", "SAC")}
    assert set(ours) == {"WholeEpisodePPO", *others}


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ("WholeEpisodPPO", 'Did you mean "WholeEpisodePPO"'),
        ("ConSpecAPO", 'Did you mean "ConSpecAPPO"'),
        ("conspecdqn", 'Did you mean "ConSpecDQN"'),
        ("wholly unknown", r'unknown algorithm "wholly unknown"\.$'),
        ({"grid_search": ["PPO", "SAC"]}, "expected the name of an algorithm"),
        ("no_algorithm", "is not an RLlib algorithm"),
    ],
)
def test_what_is_no_algorithm(run, says):
    register_trainable("no_algorithm", lambda config: None)
    with pytest.raises(OptionError, match=says) as raised:
        find_algorithm(run)
    assert raised.value.option == "run"


@pytest.mark.parametrize(
    ("run", "env"),
    [
        ("APPO", "CartPole-v1"),
        ("IMPALA", "CartPole-v1"),
        ("DQN", "CartPole-v1"),
        ("SAC", "Pendulum-v1"),
        ("ConSpecAPPO", "CartPole-v1"),
        ("ConSpecIMPALA", "CartPole-v1"),
        ("ConSpecDQN", "CartPole-v1"),
        ("ConSpecSAC", "Pendulum-v1"),
    ],
)
def test_other_algorithms_of_rllib_by_name(run, env):
    (config,) = validate(
        Experiment(name="x", run=run, env=env, config={"lr": None if run.endswith("SAC") else 1e-3})
    )
    assert config.algo_class.__name__ == run
