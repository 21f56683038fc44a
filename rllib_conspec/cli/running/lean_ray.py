"""A local Ray without the services that a run on one machine never asks for.

Ray starts an autoscaler, a server of the dashboard (also where none is shown) and a reader of logs
(also where nobody sees them): three processes, more than a second of a core. There are no settings
for them, so the methods that start them are left out for the while.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STARTS = ("start_monitor", "start_api_server")
STARTS_LOGS = "start_log_monitor"


@contextmanager
def only_what_is_used(logs: bool) -> Iterator[None]:
    """Start Ray in the block. With `logs`, what workers print comes to the driver."""
    from ray._private.node import Node

    def nothing(node: Any, *args: Any, **kwargs: Any) -> None:
        node._webui_url = ""  # which the dashboard's server would have found

    names = STARTS if logs else (*STARTS, STARTS_LOGS)
    before = {name: getattr(Node, name) for name in names}
    for name in names:
        setattr(Node, name, nothing)
    try:
        yield
    finally:
        for name, method in before.items():
            setattr(Node, name, method)
