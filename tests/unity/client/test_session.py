import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.unity.client import ports
from rllib_conspec.unity.client.faults import PlayerDied
from rllib_conspec.unity.client.options import PlayerOptions
from rllib_conspec.unity.client.session import Session, in_numbers

KNOWN = {"variant": ("train", "black"), "speed": ()}


def test_words_become_the_numbers_that_the_player_gave_them():
    given = {"variant": "black", "speed": 2}
    assert in_numbers(given, KNOWN) == {"variant": 1.0, "speed": 2.0}
    assert in_numbers({"variant": True}, KNOWN) == {"variant": 1.0}
    assert in_numbers({"anything": 3}, None) == {"anything": 3.0}


@pytest.mark.parametrize(
    ("given", "known", "message"),
    [
        ({"varian": 1}, KNOWN, 'unknown varian. Did you mean "variant"'),
        ({"variant": "blak"}, KNOWN, "must be one of train, black, not 'blak'.*\"black\""),
        ({"speed": "fast"}, KNOWN, "speed must be a number, not 'fast'"),
        ({"anything": "fast"}, None, "anything must be a number"),
    ],
)
def test_others_are_refused(given, known, message):
    with pytest.raises(OptionError, match=f"parameters: .*{message}"):
        in_numbers(given, known)


def test_a_session_from_start_to_end(player, tmp_path):
    port = ports.take(29000)
    options = PlayerOptions(file_name=player("keys"), num_agents=2, parameters={"keys": 2})
    session = Session(options, port.number, 2, seed=0)
    assert session.pid
    assert session.announced.max_episode_steps == 125
    assert session.begin(seed=3).shape == (2, 5, 5, 3)
    assert session.stats == {}
    session.close()
    assert session.pid is None
    # Where the player writes its log is told when it cannot be read from its output.
    silent = PlayerOptions(file_name=player("leaves"), log_dir=str(tmp_path / "logs"))
    with pytest.raises(PlayerDied, match=f"its log is in {tmp_path / 'logs'}"):
        Session(silent, port.number, 2, seed=0)
    port.release()
