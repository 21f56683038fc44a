import pytest

from rllib_conspec.cli import examples
from rllib_conspec.cli.experiment import load_experiments
from rllib_conspec.cli.validate import validate
from rllib_conspec.errors import UserError


@pytest.mark.parametrize("name", examples.names())
def test_every_example_is_valid_and_says_what_to_expect(name):
    file = examples.find(name)
    header = [line for line in file.read_text().splitlines() if line.startswith("#")]
    assert examples.headline(file)
    assert any(line.startswith("# Expected: ") for line in header)
    assert any(line.startswith("# Time: ") for line in header)
    (experiment,) = load_experiments(str(file), {})
    # Names of their own, so that --resume cannot take up another file's run.
    assert experiment.name == file.stem + ("_cpu" if name.startswith("cpu/") else "")
    if experiment.restore:  # the few-shot tests start from a run that is not there yet
        with pytest.raises(UserError, match=r"restore: .*results/orangetree"):
            validate(experiment)
        experiment.restore = None
    validate(experiment)


def test_list_get_and_the_nearest_name(rllib):
    listing = rllib("example", "list").stdout
    assert "keys2 " in listing and "ablations/keys4_no_freezing" in listing
    assert "Multi-key-to-door, 2 keys: ConSpec on PPO" in listing
    assert rllib("example", "get", "keys2").stdout == examples.find("keys2").read_text()
    assert rllib("example", "get", "keys4_no_freezing").exit_code == 0
    unknown = rllib("example", "get", "key2")
    assert unknown.exit_code == 2
    assert unknown.stderr == 'rllib: no example "key2". Did you mean "keys2"?\n'


def test_names_are_completed():
    assert examples.complete(None, None, "keys3") == ["keys3", "keys3_ppo"]
