"""A local Ray without the services that a run on one machine never asks for.

Ray starts an autoscaler, a server of the dashboard and an agent of it (also where none is shown),
and a reader of logs (also where nobody sees them): four processes, three seconds of a core, and 150
MB for the agent alone. There are no settings for them, so the methods that start them are left out
for the while, and in the agent's place stands a program that does nothing (`no_agent.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STARTS = ("start_monitor", "start_api_server")
STARTS_LOGS = "start_log_monitor"
AGENT = Path("dashboard", "agent.py")  # in Ray's own directory
NO_AGENT = Path(__file__).with_name("no_agent.py")


@contextmanager
def only_what_is_used(logs: bool) -> Iterator[None]:
    """Start Ray in the block. With `logs`, what workers print comes to the driver."""
    import ray
    from ray._private import services
    from ray._private.node import Node

    agent = str(Path(ray.__file__).parent / AGENT)
    start = services.start_ray_process

    def start_without_agent(command: list[str], *args: Any, **kwargs: Any) -> Any:
        return start([str(c).replace(agent, str(NO_AGENT)) for c in command], *args, **kwargs)

    def nothing(node: Any, *args: Any, **kwargs: Any) -> None:
        node._webui_url = ""  # which the dashboard's server would have found

    names = STARTS if logs else (*STARTS, STARTS_LOGS)
    before = {name: getattr(Node, name) for name in names}
    for name in names:
        setattr(Node, name, nothing)
    services.start_ray_process = start_without_agent
    try:
        yield
    finally:
        services.start_ray_process = start
        for name, method in before.items():
            setattr(Node, name, method)
