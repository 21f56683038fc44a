"""Pictures as ML-Agents sends them when they are compressed: PNG.

Pillow reads every PNG. The built-in player writes the simplest kind: 8 bits a channel, rows as they
are, stored instead of compressed, because on one host memory is faster than compression. That kind
is read here in place, without Pillow.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}  # PNG's name for that many channels
LARGEST_BLOCK = 0xFFFF  # bytes that zlib can store in one piece


class StoredPicture:
    """PNG files of one shape, uint8 ``[height, width, channels]``, that differ in pixels only."""

    def __init__(self, shape: Sequence[int]):
        height, width, channels = self.shape = tuple(shape)
        self._row = 1 + width * channels  # the first byte says how the row is filtered: 0, not
        self._size = height * self._row
        self.possible = channels in COLOURS and self._size <= LARGEST_BLOCK
        if not self.possible:
            return
        # zlib's header, then one last block that is not compressed, with its length twice.
        block = b"\x78\x01\x01" + struct.pack("<HH", self._size, self._size ^ 0xFFFF)
        header = struct.pack(">IIBBBBB", width, height, 8, COLOURS[channels], 0, 0, 0)
        length = struct.pack(">I", len(block) + self._size + 4)
        self._before = SIGNATURE + _chunk(b"IHDR", header) + length + b"IDAT" + block
        self._checked = zlib.crc32(b"IDAT" + block)
        self._after = _chunk(b"IEND", b"")
        self._length = len(self._before) + self._size + 8 + len(self._after)
        self._unfiltered = bytes(height)
        self._rows = np.zeros((height, self._row), np.uint8)

    def write(self, picture: np.ndarray) -> bytes:
        """The file of a picture."""
        self._rows[:, 1:] = picture.reshape(len(picture), -1)
        end = struct.pack(">I", zlib.adler32(self._rows))
        check = struct.pack(">I", zlib.crc32(end, zlib.crc32(self._rows, self._checked)))
        return b"".join((self._before, self._rows, end, check, self._after))

    def read(self, data: bytes) -> np.ndarray | None:
        """The pixels, where they lie in ``data``; None if the file is of another kind."""
        if len(data) != self._length or not data.startswith(self._before):
            return None
        first = len(self._before)
        if data[first : first + self._size : self._row] != self._unfiltered:
            return None
        rows = np.frombuffer(data, np.uint8, self._size, first).reshape(-1, self._row)
        return rows[:, 1:].reshape(self.shape)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(data, zlib.crc32(kind))
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


class PngFiles:
    """Reads and writes pictures of one shape."""

    def __init__(self, shape: Sequence[int]):
        self._stored = StoredPicture(shape)

    def write(self, picture: np.ndarray) -> bytes:
        """A PNG file; stored if the picture is small enough."""
        if self._stored.possible:
            return self._stored.write(picture)
        from PIL import Image

        file = io.BytesIO()
        Image.fromarray(picture).save(file, "png", compress_level=1)
        return file.getvalue()

    def read(self, data: bytes) -> np.ndarray:
        """uint8 ``[height, width, channels]`` of one picture, or of several glued together.

        ML-Agents sends more than three channels as several pictures in a row.
        """
        stored = self._stored.read(data) if self._stored.possible else None
        if stored is not None:
            return stored
        starts = [0]
        while (following := data.find(SIGNATURE, starts[-1] + 1)) > 0:
            starts.append(following)
        parts = [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]
        return np.concatenate([_read_any(part) for part in parts], axis=2)


def _read_any(data: bytes) -> np.ndarray:
    from PIL import Image

    picture = np.asarray(Image.open(io.BytesIO(data)))
    return picture[:, :, None] if picture.ndim == 2 else picture
