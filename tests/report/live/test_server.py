"""What a browser, and who is no browser of ours, gets from the server of the live page."""

import asyncio
import contextlib
import json
import os
import shutil
import socket
from functools import partial

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from serving import Results, awaited
from yarl import URL

from rllib_conspec.errors import UserError
from rllib_conspec.report.live import run as run_module
from rllib_conspec.report.live import trial as trial_module
from rllib_conspec.report.live.run import Run
from rllib_conspec.report.live.server import POLICY, application, bound


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(trial_module, "PERIOD", 0.01)
    monkeypatch.setattr(
        trial_module, "FIRST", 1000
    )  # no model is imported, so nothing comes between
    monkeypatch.setattr(run_module, "FRESH", 0.01)


class Watcher:
    """A browser that listens to events."""

    def __init__(self, response):
        self.response = response

    async def hear(self, *events):
        """The next event of one of these kinds: (kind, what it tells)."""
        async with asyncio.timeout(60):
            while True:
                block = await self.response.content.readuntil(b"\n\n")
                kind, _, told = block.decode().strip().partition("\n")
                if kind.removeprefix("event: ") in events:
                    return kind.removeprefix("event: "), json.loads(told.removeprefix("data: "))

    async def state(self, text):
        """Wait for a line about the run with `text` in it."""
        while text not in (await self.hear("state"))[1]["state"]:
            pass


def served(test):
    """Run `test(get, watch, path)` beside a server for `path`."""

    def run(tmp_path):
        async def beside():
            async with (
                TestServer(application(Run(tmp_path)), host="127.0.0.1") as server,
                ClientSession() as session,
                contextlib.AsyncExitStack() as open_,
            ):

                async def get(path, **kwargs):
                    url = URL(f"http://127.0.0.1:{server.port}{path}", encoded=True)
                    return await open_.enter_async_context(session.get(url, **kwargs))

                async def watch(trial=""):
                    return Watcher(await get("/events" + trial))

                await test(get, watch, tmp_path)

        awaited(beside())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@served
async def test_only_this_machines_names_are_answered(get, watch, path):
    for host in (
        "evil.example",
        "evil.example:7007",
        "127.0.0.1.evil.example",
        "localhost.x:1",
        "",
    ):
        for place in ("/", "/events", "/plotly.js"):
            answer = await get(place, headers={"Host": host})
            assert answer.status == 421 and len(await answer.text()) < 100
    for host in ("localhost:8000", "127.0.0.1", "[::1]:7007"):  # as through `ssh -L 8000:…`
        assert (await get("/", headers={"Host": host})).status == 200


@served
async def test_no_file_but_the_pages_own(get, watch, path):
    Results(path / "trial", 1)
    await (await watch()).hear("start")
    secret = (path / "trial" / "result.json").read_text()
    for place in (
        "/trial/result.json",
        "/result.json",
        "/..%2ftrial%2fresult.json",
        "/trial/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/server.py",
        "/style.css/",
    ):
        answer = await get(place)
        assert answer.status == 404, place
        text = await answer.text()
        assert secret not in text and "root:" not in text
        assert answer.headers["Content-Security-Policy"] == POLICY
    other = await watch("?trial=..%2f..%2fetc")
    await other.state("no trial ../../etc here")


@served
async def test_two_watchers_one_of_which_leaves(get, watch, path):
    results = Results(path / "trial", 3)
    first, second = await watch(), await watch()
    for watcher in (first, second):
        _, told = await watcher.hear("start")
        assert told["columns"]["training_iteration"] == [1, 2, 3]
    results.write(4)
    for watcher in (first, second):
        _, told = await watcher.hear("rows")
        assert told["columns"]["training_iteration"] == [4]
    first.response.close()
    for i in (5, 6):
        results.write(i)
        assert (await second.hear("rows"))[1]["facts"]["iteration"] == str(i)


@served
async def test_half_a_line_waits_and_a_damaged_one_is_told(get, watch, path):
    results = Results(path / "trial", 2)
    watcher = await watch()
    await watcher.hear("start")
    file = path / "trial" / "result.json"
    with file.open("a") as stream:
        stream.write('{"training_iteration": 2')
        stream.flush()
        await asyncio.sleep(0.1)
        stream.write("\n")
    _, told = await watcher.hear("rows")
    assert not any(told["columns"].values())
    assert told["log"][-1]["text"] == "a line of result.json cannot be read and left out"
    results.write(3)
    assert (await watcher.hear("rows"))[1]["columns"]["training_iteration"] == [3]


@served
async def test_from_nothing_to_a_run_that_vanishes_and_comes_back(get, watch, path):
    watcher = await watch()
    await watcher.state("nothing here yet")
    Results(path / "trial")
    await watcher.hear("start")  # without a row
    results = path / "trial"
    with (results / "result.json").open("w") as stream:
        stream.write(json.dumps({"training_iteration": 1, "seconds": {"a": 1}}) + "\n")
    while (await watcher.hear("start"))[1]["columns"]["training_iteration"] != [1]:
        pass
    shutil.rmtree(results)
    await watcher.state("the run is gone")
    Results(path / "trial", 2)
    while (await watcher.hear("start"))[1]["columns"]["training_iteration"] != [1, 2]:
        pass


@served
async def test_a_restarted_run_is_told_from_its_beginning_and_marked(get, watch, path):
    results = Results(path / "trial", 9)
    watcher = await watch()
    await watcher.hear("start")
    (path / "trial" / "result.json").unlink()
    results.write(1, 2, 3)
    results.write(4, iterations_since_restore=1)
    while True:
        _, told = await watcher.hear("start", "rows")
        if told["begun"]:
            break
    assert told["begun"] == [3] and told["log"][-1]["text"] == "resumed after iteration 3"
    _, told = await (await watch()).hear("start")
    assert told["columns"]["training_iteration"] == [1, 2, 3, 4]


@served
async def test_what_cannot_be_read_is_one_line(get, watch, path):
    Results(path / "trial")
    (path / "trial" / "result.json").mkdir()
    _, told = await (await watch()).hear("start")
    assert told["state"] == "result.json cannot be read: Is a directory"


@served
async def test_a_run_that_failed_says_why(get, watch, path):
    Results(path / "trial", 1)
    (path / "trial" / "error.txt").write_text("Traceback\nValueError: lava\n")
    _, told = await (await watch()).hear("start")
    assert told["state"] == "failed: ValueError: lava"


@served
async def test_the_one_that_wrote_last_is_shown_and_others_can_be_chosen(get, watch, path):
    old = Results(path / "keys" / "trial_0", 1)
    for name in ("result.json", "params.json"):
        os.utime(old.path / name, (1, 1))
    Results(path / "keys" / "trial_1", 2)
    _, told = await (await watch()).hear("trials")
    assert told["names"] == ["keys/trial_1", "keys/trial_0"] and told["current"] == "keys/trial_1"
    other = await watch("?trial=keys%2ftrial_0")
    assert (await other.hear("trials"))[1]["current"] == "keys/trial_0"
    assert (await other.hear("start"))[1]["columns"]["training_iteration"] == [1]


def test_a_browser_that_does_not_listen_is_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_module, "WAITING", 3)
    results = Results(tmp_path / "trial", 1)

    async def watch():
        trial = trial_module.Trial(results.path, "trial")
        async with trial.watching() as slow:
            for i in range(2, 9):
                results.write(i)
                await asyncio.sleep(0.05)
            heard = [slow.get_nowait() for _ in range(slow.qsize())]
        await trial.close()
        return heard

    heard = awaited(watch())
    assert heard[-1] is None and len(heard) <= 3


def test_a_port_in_use_is_one_line_and_without_one_another_is_taken(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"--port {port}: in use by another program"):
            bound(port)
        monkeypatch.setattr("rllib_conspec.report.live.server.PORT", port)
        with bound(None) as other:
            host, free = other.getsockname()
            assert host == "127.0.0.1" and free != port


def test_what_is_no_run_is_one_line(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="nowhere: no such directory"):
        Run(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="a run is a directory, this is a file"):
        Run(tmp_path / "file")

    def forbid(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.listdir", partial(forbid))
    with pytest.raises(UserError, match="cannot be read: Permission denied"):
        Run(tmp_path)
