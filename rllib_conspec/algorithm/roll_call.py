"""Who of the remote rollout workers is missing: a line for the user when one dies or comes back."""

from __future__ import annotations

from ray.rllib.env.env_runner_group import EnvRunnerGroup


class RollCall:
    """Compares who answers with who answered before."""

    def __init__(self) -> None:
        self.deaths = 0
        self._missing: set[int] = set()

    def call(self, group: EnvRunnerGroup) -> list[str]:
        """One line for everybody who died or came back since the last call."""
        missing = set(group._worker_manager.actor_ids()) - set(group.healthy_env_runner_ids())
        lines = []
        for worker in sorted(missing - self._missing):
            self.deaths += 1
            lines.append(
                f"rollout worker {worker} died ({_times(self.deaths)} so far): training goes on "
                "without it, and another one is started in its place."
            )
        lines += [f"rollout worker {worker} is back." for worker in sorted(self._missing - missing)]
        self._missing = missing
        # Those that were replaced before they were missed.
        unseen = group.num_remote_worker_restarts() - self.deaths
        if unseen > 0:
            self.deaths += unseen
            died = "a rollout worker" if unseen == 1 else f"{unseen} rollout workers"
            lines.append(f"{died} died and came back ({_times(self.deaths)} so far).")
        return lines


def _times(count: int) -> str:
    return "1 death" if count == 1 else f"{count} deaths"
