"""What another user of the same machines can do to a cluster: python other_user.py KEY=VALUE...

Prints one line per attempt. as=stranger has no token, as=guesser a wrong one; as=owner makes the
same attempts with the right one, to show that they would work.
"""

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

options = dict(word.split("=", 1) for word in sys.argv[1:])
TOKEN = options["token"]


def attempt(name, action):
    try:
        print(f"{name}: {action()}", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)


def read_token():
    Path(TOKEN).read_text()
    return "done"


def connect():
    client = GcsClient(address=options["gcs"])
    return f"done, {len(client.get_all_node_info(timeout=10))} nodes"


def write():
    client = GcsClient(address=options["gcs"])
    client.internal_kv_put(b"other_user", b"was here", True, None, timeout=10)
    return "done"


def submit():
    body = b'{"entrypoint": "touch /tmp/other_user_was_here"}'
    request = urllib.request.Request(f"http://{options['dashboard']}/api/jobs/", data=body)
    request.add_header("Content-Type", "application/json")
    if options["as"] == "owner":
        request.add_header("Authorization", f"Bearer {Path(TOKEN).read_text()}")
    return f"done, {urllib.request.urlopen(request, timeout=20).status}"


if options["as"] == "owner":
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": TOKEN}
elif options["as"] == "guesser":
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "f" * 64}
else:
    os.environ["RAY_AUTH_MODE"] = "disabled"

from ray._raylet import GcsClient  # noqa: E402  (reads the variables)

if options["as"] != "owner":
    # After the imports: the interpreter may lie where others cannot read.
    os.setgid(65534)
    os.setuid(65534)
for name in options["try"].split(","):
    attempt(name, globals()[name])
os._exit(0)
