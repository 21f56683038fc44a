"""Imports go one way, and only ConSpec's own folder and short form know ConSpec.

Read from the source, so that an import inside of a function counts too.
"""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "rllib_conspec"

# Lowest first. A room imports from lower lines, and from its own line only what ASIDE says.
LINES = [
    {
        "annotations",
        "episodes",
        "errors",
        "gatherer",
        "importing",
        "options",
        "recordings",
        "registry",
        "single_env",
        "success",
    },
    {"networks", "reward_models", "auxiliary", "environments"},
    {"algorithm"},
    {"tasks", "unity", "slurm", "report"},
    {"reproduce"},
    {"cli"},
]
ASIDE = {
    ("options", "errors"),
    ("recordings", "episodes"),
    ("recordings", "errors"),
    ("registry", "errors"),
    ("registry", "importing"),
    ("success", "episodes"),
    ("success", "errors"),
    ("success", "importing"),
    ("auxiliary", "networks"),
    ("reward_models", "networks"),
    ("tasks", "unity"),
}
# Used without any of these: in Unity players, on a cluster's head, by other programs.
ALONE = {"tasks", "unity", "slurm"}
NOT_FOR_THEM = {"algorithm", "report", "cli"}
WITHOUT_RAY = {"episodes", "success", "networks", "reward_models", "auxiliary", "environments"}

SHORT_FORM = {"algorithm/conspec.py", "algorithm/backbones.py", "algorithm/__init__.py"}
WORDS = re.compile(r"conspec|prototype|exemplar|frozen|freez", re.IGNORECASE)
# Words that mean something else: the package, dataclasses that cannot be changed, RLlib's flag.
INNOCENT = re.compile(r"rllib_conspec|frozen=True|copy_frozen")
NAMED_ON_PURPOSE = {
    "cli/examples.py": "keys4_no_freezing",  # the name of an example file
}


def room_of(module: str) -> str:
    """`networks` of `rllib_conspec.networks.encoders`."""
    return module.split(".")[1]


@cache
def imports() -> dict[Path, set[str]]:
    """What every file imports: full names of modules, and of what is imported from ours."""
    return {path: set(_imported(path)) for path in sorted(PACKAGE.rglob("*.py"))}


def _imported(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield node.module
            if node.module == "rllib_conspec":
                yield from (f"rllib_conspec.{alias.name}" for alias in node.names)


@cache
def rooms() -> dict[str, set[str]]:
    """Every room of the package: the names of all that it imports."""
    found = {}
    for path, names in imports().items():
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room != "__init__":  # the package itself: it stands above all
            found.setdefault(room, set()).update(names)
    return found


def other_rooms(room: str) -> set[str]:
    ours = {name for name in rooms()[room] if name.startswith("rllib_conspec.")}
    return {room_of(name) for name in ours} & rooms().keys() - {room}


def test_every_room_has_its_line():
    assert set().union(*LINES) == rooms().keys()


@pytest.mark.parametrize("height", range(len(LINES)))
def test_rooms_import_downwards(height):
    below = set().union(*LINES[:height])
    for room in LINES[height]:
        upwards = {x for x in other_rooms(room) - below if (room, x) not in ASIDE}
        assert not upwards, f"{room} imports {upwards}"


def test_what_is_allowed_aside_is_used_and_never_both_ways():
    for room, beside in ASIDE:
        assert beside in other_rooms(room)
        assert (beside, room) not in ASIDE


@pytest.mark.parametrize("room", sorted(ALONE))
def test_environments_and_cluster_know_no_algorithm(room):
    assert not other_rooms(room) & NOT_FOR_THEM


def libraries(room: str) -> set[str]:
    return {name.split(".")[0] for name in rooms()[room]}


@pytest.mark.parametrize("room", sorted(WITHOUT_RAY))
def test_the_maths_never_meets_ray(room):
    assert "ray" not in libraries(room)


def test_environments_need_no_torch():
    assert "torch" not in libraries("environments")


def test_ray_is_not_imported_by_a_detour():
    """All modules without Ray, in a process of their own."""
    modules = [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in imports()
        if path.relative_to(PACKAGE).parts[0].removesuffix(".py") in WITHOUT_RAY
    ]
    assert "rllib_conspec.reward_models.rnd" in modules and len(modules) > 20
    code = f"import sys, {', '.join(modules)}; print('ray' in sys.modules, 'torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "True"]


@pytest.mark.parametrize("room", ["algorithm", "cli", "report"])
def test_no_word_of_conspec(room):
    for path in (PACKAGE / room).rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name in SHORT_FORM:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            rest = INNOCENT.sub("", line.replace(NAMED_ON_PURPOSE.get(name, "\0"), ""))
            assert not WORDS.search(rest), f"{name}:{number}: {line.strip()}"


def test_what_is_named_on_purpose_is_still_there():
    for name, text in NAMED_ON_PURPOSE.items():
        assert text in (PACKAGE / name).read_text()
    for name in SHORT_FORM:
        assert WORDS.search(INNOCENT.sub("", (PACKAGE / name).read_text()))
