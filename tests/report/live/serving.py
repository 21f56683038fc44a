"""Runs on disk, as Tune writes them, and the page of one in this process."""

import asyncio
import contextlib
import json
import threading
from pathlib import Path

from aiohttp import web

from rllib_conspec.report.live.run import Run
from rllib_conspec.report.live.server import application


def row(i: int, **values) -> dict:
    return {
        "training_iteration": i,
        "num_env_steps_sampled_lifetime": 100 * i,
        "time_total_s": 2.0 * i,
        "iterations_since_restore": i,
        "env_runners": {"success_rate": i % 5 / 5, "episode_return_mean": i / 3},
        "seconds": {"sample": 0.5, "iteration": 2.0},
        "fault_tolerance": {"num_healthy_workers": 2, "num_remote_worker_restarts": 0},
        "config": {"num_env_runners": 2, "reward_models": {"rnd": {}}},
        "rnd": {"loss": 0.5, "bonus": 1 / i},
    } | values


class Results:
    """A trial's directory; rows are added as a run does it."""

    def __init__(self, path: Path, rows: int = 0):
        self.path = path
        path.mkdir(parents=True)
        (path / "params.json").write_text("{}")
        if rows:
            self.write(*range(1, rows + 1))

    def write(self, *iterations: int, **values):
        with (self.path / "result.json").open("a") as stream:
            stream.writelines(json.dumps(row(i, **values)) + "\n" for i in iterations)


@contextlib.contextmanager
def served(path: Path):
    """The address of a page about `path`."""
    loop, ready, address = asyncio.new_event_loop(), threading.Event(), []

    async def serve():
        runner = web.AppRunner(application(Run(path)), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        address.append(f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/")
        ready.set()
        await ended.wait()
        await runner.cleanup()

    ended = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(60)
        yield address[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()
