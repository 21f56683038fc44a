"""What the user reads when rollout workers die and come back."""

from dataclasses import dataclass, field

from rllib_conspec.algorithm.roll_call import RollCall


@dataclass
class Group:
    """The part of RLlib's group of workers that is asked."""

    healthy: set = field(default_factory=lambda: {1, 2, 3})
    restarts: int = 0

    @property
    def _worker_manager(self):
        return self

    def actor_ids(self):
        return [1, 2, 3]

    def healthy_env_runner_ids(self):
        return sorted(self.healthy)

    def num_remote_worker_restarts(self):
        return self.restarts


def test_deaths_are_said_once_each_and_so_is_coming_back():
    group, roll = Group(), RollCall()
    assert roll.call(group) == []
    group.healthy = {1, 3}
    (line,) = roll.call(group)
    assert line.startswith("rollout worker 2 died (1 death so far): training goes on")
    assert roll.call(group) == []
    group.healthy, group.restarts = {3, 2}, 1
    died, back = roll.call(group)
    assert died.startswith("rollout worker 1 died (2 deaths so far)")
    assert back == "rollout worker 2 is back."
    group.healthy, group.restarts = {1, 2, 3}, 2
    assert roll.call(group) == ["rollout worker 1 is back."]


def test_a_worker_replaced_before_it_was_missed_is_said_too():
    group, roll = Group(), RollCall()
    group.restarts = 1
    assert roll.call(group) == ["a rollout worker died and came back (1 death so far)."]
    assert roll.call(group) == []
    group.restarts = 3
    assert roll.call(group) == ["2 rollout workers died and came back (3 deaths so far)."]
