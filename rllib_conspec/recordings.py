"""Recorded episodes in a file: what demonstrations are kept in.

    one line of JSON: what was played, by which version, with which spaces, and how many episodes
    for every episode: one line of JSON with its numbers and the sizes of its parts, then the parts,
        actions, rewards and observations (lz4), as bytes
    one last line, END

Compact (a Montezuma episode of 1 200 pictures takes some 600 kB instead of 25 MB), and readable in
its first line by anybody: `head -n 1 FILE`.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import lz4.frame
import numpy as np
from gymnasium import spaces

from rllib_conspec.episodes import Episode, PackedEpisode
from rllib_conspec.errors import UserError

KIND = "rllib_conspec recording 1"
END = b"END\n"


@dataclass(frozen=True)
class Origin:
    """What was played: episodes of another origin mean something else."""

    plays: str  # the game
    version: str  # of the program that plays it
    observations: str  # their shape and type
    actions: str

    @classmethod
    def of(
        cls, plays: str, version: str, observations: spaces.Box, actions: spaces.Space
    ) -> Origin:
        shape = "×".join(map(str, observations.shape))
        return cls(plays, version, f"{shape} {observations.dtype}", str(actions))

    def difference(self, other: Origin) -> str:
        """How this one differs from what is wanted, in words; "" if it does not. What is not known
        of one of them is not compared.
        """
        for name, said in (
            ("plays", "is of {}, not of {}"),
            ("version", "was played by {}, not by {}"),
            ("observations", "has observations {}, not {}"),
            ("actions", "has actions {}, not {}"),
        ):
            own, wanted = getattr(self, name), getattr(other, name)
            if own and wanted and own != wanted:
                return said.format(own, wanted)
        return ""


@dataclass(frozen=True)
class Recording:
    origin: Origin
    player: str  # who made it, in words
    frames: int  # steps that were played for it, also those that were thrown away
    episodes: tuple[PackedEpisode, ...]


def save(path: str | os.PathLike, recording: Recording) -> None:
    """Write the file, whole or not at all."""
    path = Path(path)
    head = {
        "kind": KIND,
        **asdict(recording.origin),
        "player": recording.player,
        "frames": recording.frames,
        "episodes": len(recording.episodes),
    }
    half = path.with_name(path.name + ".part")
    with half.open("wb") as file:
        file.write(_line(head))
        for episode in recording.episodes:
            _write(file, episode)
        file.write(END)
    half.replace(path)


def load(path: str | os.PathLike, count: int | None = None) -> Recording:
    """The file's first `count` episodes, or all; a UserError says what is wrong with it."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f"there is no file {path}.")
    with path.open("rb") as file:
        head = _read_line(file)
        if head is None or head.get("kind") != KIND:
            raise UserError(f"{path} is not a recording; `rllib record` makes them.")
        wanted = head["episodes"] if count is None else min(count, head["episodes"])
        episodes = []
        while len(episodes) < wanted:
            episode = _read(file)
            if episode is None:
                raise _cut_off(path, len(episodes), head["episodes"])
            episodes.append(episode)
        # The end is missing in a file that was cut off, however few episodes are wanted.
        file.seek(-len(END), os.SEEK_END)
        if file.read() != END:
            raise _cut_off(path, len(episodes), head["episodes"])
    origin = Origin(*(head[name] for name in ("plays", "version", "observations", "actions")))
    return Recording(origin, head["player"], head["frames"], tuple(episodes))


def _cut_off(path: Path, found: int, said: int) -> UserError:
    return UserError(f"{path} is cut off: {found} of its {said} episodes are whole. Copy it again.")


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode() + b"\n"


def _read_line(file: BinaryIO) -> dict[str, Any] | None:
    try:
        values = json.loads(file.readline(1 << 20))
    except ValueError:
        return None
    return values if isinstance(values, dict) else None


def _write(file: BinaryIO, episode: PackedEpisode) -> None:
    rest = episode.rest
    actions, rewards = np.ascontiguousarray(rest.actions), np.asarray(rest.rewards, np.float32)
    parts = [actions.tobytes(), rewards.tobytes(), episode.observations]
    head = {
        "length": len(rest),
        "return": float(rewards.sum()),
        "terminated": rest.terminated,
        "success": rest.success,
        "events": [[int(step), name] for step, name in rest.events],
        "seed": rest.seed,
        "actions": [str(actions.dtype), *actions.shape],
        "observations": [str(rest.observations.dtype), *rest.shape],
        "sizes": [len(part) for part in parts],
        "check": zlib.crc32(b"".join(parts)),
    }
    file.write(_line(head))
    for part in parts:
        file.write(part)


def _read(file: BinaryIO) -> PackedEpisode | None:
    """The next episode; None if it is not whole."""
    head = _read_line(file)
    if head is None or "sizes" not in head:
        return None
    parts = [file.read(size) for size in head["sizes"]]
    if zlib.crc32(b"".join(parts)) != head["check"]:
        return None
    actions, rewards, observations = parts
    kind, *shape = head["observations"]
    rest = Episode(
        observations=np.empty((0, *shape), dtype=kind),
        actions=np.frombuffer(actions, head["actions"][0]).reshape(head["actions"][1:]),
        rewards=np.frombuffer(rewards, np.float32),
        terminated=head["terminated"],
        success=head["success"],
        events=tuple((step, name) for step, name in head["events"]),
        seed=head["seed"],
    )
    frames = np.frombuffer(lz4.frame.decompress(observations), kind).reshape(-1, *shape)
    # Digests are computed from the frames: they are not worth their place in the file.
    return PackedEpisode(rest, observations, replace(rest, observations=frames).digests)
