"""`rllib record` and what a run makes of it."""

import pytest

from rllib_conspec.recordings import load

KEYS = """\
keys:
  run: ConSpec
  env: rllib_conspec:MultiKeyToDoor-v0
  stop: {training_iteration: 1}
  config:
    env_config: {keys: 1}
    conspec: {demonstrations: demos.rec}
"""


@pytest.fixture
def recorded(rllib, tmp_path):
    (tmp_path / "keys.yaml").write_text(KEYS)
    return rllib("record", "demos.rec", "-f", "keys.yaml", "--episodes", "3")


def test_a_random_player_keeps_only_successes(recorded, tmp_path):
    assert recorded.exit_code == 0, recorded.stderr
    found = load(tmp_path / "demos.rec")
    assert len(found.episodes) == 3 and found.player == "random"
    assert all(e.success and e.rest.rewards.sum() > 0 for e in found.episodes)
    assert found.frames > sum(len(e) for e in found.episodes)
    assert recorded.stdout.splitlines()[-1].startswith("demos.rec: 3 of ")


def test_a_list_of_actions(rllib, tmp_path):
    (tmp_path / "wait.txt").write_text("0*100")
    config = ["--env", "rllib_conspec:MultiKeyToDoor-v0", "--env-config", "{keys: 1}"]
    refused = rllib("record", "demos.rec", *config, "--actions", "wait.txt")
    assert refused.exit_code == 2
    assert refused.stderr == (
        "rllib: record: no success in 1 episodes (65 steps); demos.rec is not written.\n"
    )
    assert not (tmp_path / "demos.rec").exists()
    kept = rllib("record", "demos.rec", *config, "--actions", "wait.txt", "--all")
    assert kept.exit_code == 0
    (episode,) = load(tmp_path / "demos.rec").episodes
    assert not episode.rest.actions.any() and len(episode) == 65


def test_random_actions_may_be_only_some(rllib, tmp_path):
    config = ["--env", "rllib_conspec:MultiKeyToDoor-v0", "--env-config", "{keys: 1}"]
    only = ["--only", "0", "--only", "3"]
    result = rllib("record", "some.rec", *config, *only, "--all", "--episodes", 4)
    assert result.exit_code == 0, result.output
    found = load(tmp_path / "some.rec")
    assert found.player == "random, only 0, 3"
    for episode in found.episodes:
        assert set(episode.rest.actions.tolist()) == {0, 3}
    unknown = rllib("record", "some.rec", *config, "--only", "UPP")
    assert unknown.stderr.startswith("rllib: record: --only: unknown action 'UPP'; they are 0, 1")
    both = rllib("record", "some.rec", *config, "--only", "0", "--keyboard")
    assert both.stderr == "rllib: record: --only is for random actions.\n"


def test_who_gives_up_writes_nothing(rllib, tmp_path):
    config = ["--env", "rllib_conspec:MultiKeyToDoor-v0", "--env-config", "{keys: 4}"]
    refused = rllib("record", "demos.rec", *config, "--max-steps", "300")
    assert "no success in" in refused.stderr and not (tmp_path / "demos.rec").exists()


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ([], "say what to play"),
        (["--env", "CartPol-v1"], 'env: unknown environment "CartPol-v1". Did you mean'),
        (["--env", "CartPole-v1", "--keyboard", "--actions", "x"], "give one of --policy"),
        (["--env", "CartPole-v1", "--keyboard"], "--keyboard needs a terminal"),
        (["--env", "CartPole-v1", "--actions", "nothing"], "there is no file nothing"),
        (["--env", "Pendulum-v1", "--actions", "x"], "--actions needs an environment with Discr"),
        (["--policy", "nothing"], "nothing: no such checkpoint"),
    ],
)
def test_mistakes_are_answered_by_one_line(rllib, flags, line):
    refused = rllib("record", "demos.rec", *flags)
    assert refused.exit_code == 2
    assert line in refused.stderr and refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("keys: 1", "keys: 2", "is of rllib_conspec:MultiKeyToDoor-v0 keys=1, not of"),
        ("demos.rec}", "demo.rec}", "there is no file"),
        ("demos.rec}", "demos.rec, num_demonstrations: 0}", "must be at least 1"),
        ("demos.rec}", "demos.rec, memory_size: 2, memory_batch: 2, min_successes: 1}", "3 episod"),
    ],
)
def test_demonstrations_that_cannot_be_used(recorded, refused, tmp_path, before, after, line):
    (tmp_path / "bad.yaml").write_text(KEYS.replace(before, after))
    said = refused("train", "-f", "bad.yaml")
    assert said.startswith("bad.yaml: keys.config.conspec.") and line in said


def test_a_demonstration_that_is_cut_off(recorded, refused, tmp_path):
    whole = (tmp_path / "demos.rec").read_bytes()
    (tmp_path / "demos.rec").write_bytes(whole[:-100])
    said = refused("train", "-f", "keys.yaml")
    assert "config.conspec.demonstrations: " in said and "is cut off: 2 of its 3 episodes" in said


def test_a_policy_plays(rllib, sweep, tmp_path):
    played = rllib("record", "demos.rec", "--policy", sweep.trial, "--episodes", "2")
    assert played.exit_code == 0, played.stderr
    found = load(tmp_path / "demos.rec")
    assert found.player == "policy checkpoint_000002" and found.origin.plays == "CartPole-v1"
    one, two = found.episodes
    assert one.rest.rewards.sum() == len(one) and len(one.frames) == len(one)
    assert one.frames.tobytes() != two.frames.tobytes()
