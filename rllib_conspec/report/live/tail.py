"""Follows a file of JSON lines that another program writes, truncates, or copies anew.

Tune writes `result.json` elsewhere and copies it over the one in the results directory every ten
seconds; a resumed run drops rows and writes them again. So a file may be shorter for a moment, and
longer with another content: what was read last must still stand where it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

ALL = 24 * 2**20  # bytes: so much is read line by line …
SAMPLES = 1500  # … and of more than that, so many lines, evenly spaced
CHUNK = 2**16


@dataclass
class News:
    """What a look at the file brought."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    anew: bool = False  # forget all earlier rows: the file is another one now
    damaged: int = 0  # whole lines that hold no JSON object
    sampled: bool = False  # there were more rows than these


class Tail:
    """Every whole line of a file once; the half of one waits until its end is there."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._offset = 0  # behind the last whole line that was read
        self._last = b""  # that line
        self._stamp: tuple[int, int] | None = None  # size and time at the last look

    def read(self) -> News:
        """What is new since the last call. Raises OSError where the file cannot be read."""
        status = os.stat(self.path)
        stamp, before = (status.st_size, status.st_mtime_ns), self._stamp
        shorter = status.st_size < self._offset
        if stamp == before and not shorter:
            return News()
        self._stamp = stamp
        if shorter and stamp != before:
            return News()  # it may be being copied: only if it stays so, rows were dropped
        with self.path.open("rb") as stream:
            anew = shorter or not self._still_there(stream)
            if anew:
                self._offset, self._last = 0, b""
            news = self._read(stream)
        news.anew = anew
        return news

    def _still_there(self, stream: BinaryIO) -> bool:
        stream.seek(self._offset - len(self._last))
        return stream.read(len(self._last)) == self._last

    def _read(self, stream: BinaryIO) -> News:
        """The lines from the offset on. A long file is sampled: what can be seen of 100,000 rows
        is not worth reading gigabytes for.
        """
        size = stream.seek(0, os.SEEK_END)
        end = _end_of_lines(stream, self._offset, size)
        if end == self._offset:
            return News()
        news = News(sampled=end - self._offset > ALL)
        lines = _sampled if news.sampled else _every
        line = b""
        for line in lines(stream, self._offset, end):
            row = _parsed(line)
            if row is not None:
                news.rows.append(row)
            elif line.strip():
                news.damaged += 1
        self._offset, self._last = end, line
        return news


def _end_of_lines(stream: BinaryIO, start: int, size: int) -> int:
    """Behind the last newline of the bytes from `start` on; `start` if there is none."""
    while size > start:
        begin = max(start, size - CHUNK)
        stream.seek(begin)
        found = stream.read(size - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        size = begin
    return start


def _every(stream: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    stream.seek(start)
    while stream.tell() < end:
        yield stream.readline()


def _sampled(stream: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """The first line, the last one, and some between."""
    read = start
    for k in range(SAMPLES):
        place = start + k * (end - start) // SAMPLES
        if place < read:
            continue
        stream.seek(place)
        if place > start:
            stream.readline()  # the rest of a line
        if stream.tell() < end:
            yield stream.readline()
            read = stream.tell()
    last = _end_of_lines(stream, start, end - 1)
    if last >= read:
        stream.seek(last)
        yield stream.readline()


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
