"""The page and its events, on this machine only.

Nothing is read from the disk by a name out of a request: there are four files, held in memory, and
what was read or drawn of the trials that were listed here.
"""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from rllib_conspec.errors import UserError
from rllib_conspec.report import page
from rllib_conspec.report.live.run import Run

HOST = "127.0.0.1"
PORT = 7007  # if it is free
BEAT = 5.0  # seconds after which a browser that left is noticed
HERE = Path(__file__).parent
# Names under which a browser may call: another name that leads here is an attack (DNS rebinding).
NAMES = {"127.0.0.1", "localhost", "[::1]"}
# Plotly writes styles of its own into the page; everything else comes from here.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
RUN = web.AppKey("run", Run)


def serve(path: str, port: int | None, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM. Raises UserError where that cannot be."""
    run = Run(path)
    listening = bound(port)
    address = f"http://{HOST}:{listening.getsockname()[1]}"
    asyncio.run(_serve(run, listening, lambda: say(f"Watching {path}: {address} (Ctrl-C ends it)")))


def bound(port: int | None) -> socket.socket:
    """A socket on `port`; without one, on the usual port or any free one."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, PORT if port is None else port))
    except OSError as error:
        listening.close()
        if error.errno != errno.EADDRINUSE:
            raise UserError(f"--port {port}: {error.strerror}.") from error
        if port is None:
            return bound(0)
        raise UserError(
            f"--port {port}: in use by another program. Leave --port out to get a free one."
        ) from error
    return listening


async def _serve(run: Run, listening: socket.socket, ready: Callable[[], None]) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    # Streams of events never end by themselves.
    runner = web.AppRunner(application(run), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        ready()
        await ended.wait()
    finally:
        await runner.cleanup()


def application(run: Run) -> web.Application:
    app = web.Application(middlewares=[_only_here])
    app[RUN] = run
    app.on_response_prepare.append(_add_headers)
    app.on_cleanup.append(_close)
    for place, (body, kind) in _files().items():
        app.router.add_get(place, _sender(body, kind))
    app.router.add_get("/events", _events)
    return app


def _files() -> dict[str, tuple[bytes, str]]:
    (plotly,) = importlib.util.find_spec("plotly").submodule_search_locations
    look = Path(page.__file__).with_name("style.css").read_bytes()
    script = "text/javascript"
    return {
        "/": ((HERE / "page.html").read_bytes(), "text/html"),
        "/style.css": (look + (HERE / "page.css").read_bytes(), "text/css"),
        "/page.js": ((HERE / "page.js").read_bytes(), script),
        "/plotly.js": ((Path(plotly) / "package_data/plotly.min.js").read_bytes(), script),
        "/favicon.ico": (b"", "image/x-icon"),
    }


def _sender(body: bytes, kind: str) -> Any:
    async def send(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind, charset="utf-8")

    return send


@web.middleware
async def _only_here(request: web.Request, handler: Any) -> web.StreamResponse:
    if request.host.rpartition(":")[0] not in NAMES and request.host not in NAMES:
        raise web.HTTPMisdirectedRequest(text="rllib watch answers only to this machine's names.\n")
    return await handler(request)


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


async def _close(app: web.Application) -> None:
    await app[RUN].close()


async def _events(request: web.Request) -> web.StreamResponse:
    """Server-sent events: `trials`, then `start` with all there is, then what is new."""
    run = request.app[RUN]
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)

    async def send(event: str, told: str) -> None:
        await response.write(f"event: {event}\ndata: {told}\n\n".encode())

    name = request.query.get("trial")
    try:
        while (trial := run.find(name)) is None:
            await send("trials", _listed(run, None))
            state = f"no trial {name} here" if name else "nothing here yet: waiting for a run"
            await send("state", json.dumps({"state": state}))
            await asyncio.sleep(1.0)
        async with trial.watching() as queue:
            told = ""
            while True:
                if (now := _listed(run, trial.name)) != told:
                    told = now
                    await send("trials", told)
                try:
                    message = await asyncio.wait_for(queue.get(), BEAT)
                except TimeoutError:
                    await response.write(b":\n\n")  # fails when the browser has left
                    continue
                if message is None:
                    break
                await send(*message)
    except ConnectionError:
        pass
    return response


def _listed(run: Run, current: str | None) -> str:
    names = run.names()
    return json.dumps({"title": run.title, "names": names, "current": current})
