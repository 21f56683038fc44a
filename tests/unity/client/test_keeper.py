import pytest

from rllib_conspec.errors import OptionError, UserError
from rllib_conspec.unity.client.faults import PlayerDied
from rllib_conspec.unity.client.keeper import PAUSES, Keeper


class Tin:
    """What the keeper does to a player is noted."""

    def __init__(self):
        self.fate = "plays"

    def abort(self):
        self.fate = "aborted"

    def close(self):
        self.fate = "closed"


class Factory:
    """Starts players; the next ``failures`` starts fail."""

    def __init__(self, failures=0):
        self.failures = failures
        self.made = []

    def __call__(self):
        if self.failures:
            self.failures -= 1
            raise PlayerDied("exited with code 3")
        self.made.append(Tin())
        return self.made[-1]


def test_the_player_is_started_once():
    factory = Factory()
    keeper = Keeper(factory)
    assert keeper.get() is keeper.get()
    assert (len(factory.made), keeper.restarts) == (1, 0)
    keeper.close()
    keeper.close()
    assert factory.made[0].fate == "closed"


def test_failed_starts_are_repeated_with_growing_pauses():
    pauses = []
    keeper = Keeper(Factory(failures=4), sleep=pauses.append)
    keeper.get()
    assert pauses == [0, 0, 1, 2, 4]
    assert keeper.restarts == 4


def test_every_loss_is_a_line():
    keeper = Keeper(Factory(failures=1), sleep=lambda _: None)
    keeper.get()
    keeper.lost(PlayerDied("was killed"))
    assert keeper.incidents == [
        "the Unity player exited with code 3 (once so far); another one takes its place.",
        "the Unity player was killed (2 times so far); another one takes its place.",
    ]


def test_after_too_many_failures_the_last_reason_is_told():
    keeper = Keeper(Factory(failures=99), sleep=lambda _: None)
    with pytest.raises(UserError, match="failed 5 times in a row; at last it exited with code 3"):
        keeper.get()


def test_a_player_that_plays_episodes_may_be_lost_any_number_of_times():
    factory = Factory()
    keeper = Keeper(factory, sleep=lambda _: None)
    for _ in range(3 * len(PAUSES)):
        keeper.get()
        keeper.worked()
        keeper.lost(PlayerDied("was ended by SIGKILL"))
    assert {player.fate for player in factory.made} == {"aborted"}
    assert keeper.restarts == 3 * len(PAUSES) - 1


def test_a_player_that_is_always_lost_before_an_episode_ends_is_given_up():
    keeper = Keeper(Factory(), sleep=lambda _: None)
    with pytest.raises(UserError, match="SIGSEGV"):
        for _ in range(99):
            keeper.get()
            keeper.lost(PlayerDied("was ended by SIGSEGV"))


def test_what_the_user_must_put_right_is_not_tried_again():
    def start():
        raise OptionError("file_name", "does not exist")

    with pytest.raises(OptionError, match="file_name"):
        Keeper(start).get()
