import sys

import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.unity.client.options import PlayerOptions


def test_without_a_file_the_built_in_player_is_started():
    options = PlayerOptions(num_agents=8)
    command = options.command(5005)
    player = "rllib_conspec.tasks.orangetree.player"
    assert command[:5] == [sys.executable, "-m", player, "--agents", "8"]
    assert options.environment()["OMP_NUM_THREADS"] == "1"


def test_a_build_gets_the_arguments_that_unity_knows(tmp_path):
    build = tmp_path / "build.x86_64"
    build.write_text("")
    build.chmod(0o755)
    logs = tmp_path / "logs" / "here"
    options = PlayerOptions(
        file_name=str(build), additional_args=("--level", "3"), log_dir=str(logs)
    )
    assert options.command(5007) == [
        str(build),
        "-nographics",
        "-batchmode",
        "-logFile",
        str(logs / "player-5007.log"),
        "--level",
        "3",
    ]
    assert logs.is_dir()
    own = PlayerOptions(
        file_name=str(build),
        no_graphics=False,
        log_dir=str(logs),
        additional_args=("-logfile", "x"),
    )
    assert own.command(5007) == [str(build), "-logfile", "x"]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("num_agents", 0, "at least 1"),
        ("base_port", 80, "1024 to 65535"),
        ("base_port", 70000, "1024 to 65535"),
        ("timeout", 0, "above 0"),
        ("timeout", float("nan"), "above 0"),
        ("parameters", {"speed": [1]}, "speed must be a number or a word"),
        ("parameters", {"seed_low": 1}, "set from the seed"),
        ("engine", {"time_scal": 2}, 'Did you mean "time_scale"'),
        ("engine", {"time_scale": "fast"}, "time_scale must be a number"),
        ("engine", {"width": 80}, "together"),
        ("additional_args", (1,), "list of texts"),
    ],
)
def test_impossible_values_are_refused(option, value, message):
    with pytest.raises(OptionError, match=message) as caught:
        PlayerOptions(**{option: value})
    assert caught.value.option == option


def test_a_log_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    options = PlayerOptions(log_dir=str(tmp_path / "file" / "logs"))
    with pytest.raises(OptionError, match="log_dir: cannot make"):
        options.command(5005)
