"""`rllib watch` as a process of its own. What it serves: tests/report/live/."""

import signal
import socket
import urllib.request


def test_what_cannot_be_watched_is_answered_by_one_line(refused, tmp_path):
    assert refused("watch", "nowhere").startswith("nowhere: no such directory.")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "results").mkdir()
        said = refused("watch", "--port", port)
    assert said == (
        f"--port {port}: in use by another program. Leave --port out to get a free one."
    )


def test_it_says_where_the_page_is_and_ends_quietly(command, tmp_path):
    (tmp_path / "results").mkdir()
    watch = command("watch", "--port", "0")
    watch.wait_for("Watching results: http://127.0.0.1:")
    address = watch.output.split()[2]
    with urllib.request.urlopen(address) as page, urllib.request.urlopen(f"{address}/events"):
        assert b"<title>rllib watch" in page.read()
        watch.process.send_signal(signal.SIGINT)  # though a browser still listens
        code, output = watch.finish(timeout=60)
    assert code == 0 and len(output.splitlines()) == 1, output
