"""Where pip finds packages on this machine, as a pip.conf that a build can be given as a secret.

    pip config list | python3 docker/pip_conf.py OUT

writes OUT and prints the local files and directories that it names, one per line: the build
must see them too.
"""

import ast
import os
import sys
from pathlib import Path

# Only these: where to install to, or whether to ask, is the build's own business.
KEPT = (
    "index-url",
    "extra-index-url",
    "find-links",
    "no-index",
    "cert",
    "client-cert",
    "trusted-host",
    "proxy",
    "timeout",
    "default-timeout",
    "retries",
)


def settings(listing: str) -> dict[str, str]:
    """The values that `pip install` would go by: pip lets files give way to variables."""
    weights = {"global": 0, "install": 1, ":env:": 2}
    found: dict[str, tuple[int, str]] = {}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section not in weights or key not in KEPT:
            continue
        if key not in found or weights[section] >= found[key][0]:
            # pip splits lists at white space; a line break would end the value in the file.
            found[key] = weights[section], " ".join(str(ast.literal_eval(value)).split())
    return {key: value for key, (_, value) in found.items()}


def local_paths(values: dict[str, str]) -> list[str]:
    """What the settings name on this machine's disk, without what lies in another of them."""
    words = [word.removeprefix("file://") for value in values.values() for word in value.split()]
    paths = {Path(word) for word in words if word.startswith("/") and os.path.exists(word)}
    # An index in files links to packages that lie beside it.
    paths = {path.parent if path.name == "simple" else path for path in paths}
    return sorted(str(path) for path in paths if not paths.intersection(path.parents))


def main() -> None:
    values = settings(sys.stdin.read())
    out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # may hold passwords
    with os.fdopen(out, "w") as file:
        file.write("[global]\n" + "".join(f"{key} = {value}\n" for key, value in values.items()))
    for path in local_paths(values):
        print(path)


if __name__ == "__main__":
    main()
