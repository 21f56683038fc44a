"""Runs on disk, as Tune writes them, and the page of one in this process."""

import asyncio
import contextlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
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


def awaited(coroutine):
    """`asyncio.run` in a thread of its own: a browser of these tests keeps a loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


@contextlib.contextmanager
def served(path: Path):
    """The address of a page about `path`."""
    ready, here = threading.Event(), {}

    async def serve():
        runner = web.AppRunner(application(Run(path)), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        here.update(port=runner.addresses[0][1], loop=asyncio.get_running_loop())
        here["ended"] = asyncio.Event()
        ready.set()
        await here["ended"].wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield f"http://127.0.0.1:{here['port']}/"
    finally:
        here["loop"].call_soon_threadsafe(here["ended"].set)
        thread.join()


def until(page, expression: str, seconds: float = 120):
    """Wait for it in a browser. Playwright's own way needs `eval`, which the page forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"never: {expression}"
        page.wait_for_timeout(50)
