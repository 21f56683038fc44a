"""Pictures as ML-Agents sends them: PNG, or floats from 0 to 1.

Pillow reads every PNG. The built-in player writes the simplest kind, 8 bits, one block, rows as
they are; that kind is read and written here without it, ten times as fast.
"""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}  # PNG's name for that many channels


def write_png(picture: np.ndarray, level: int = 0) -> bytes:
    """``picture`` is uint8 ``[height, width, channels]``; level 0 does not compress."""
    height, width, channels = picture.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # 0: the row is not filtered
    rows[:, 1:] = picture.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, COLOURS[channels], 0, 0, 0)
    body = zlib.compress(rows, level)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(data, zlib.crc32(kind))
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def read_png(data: bytes) -> np.ndarray:
    """uint8 ``[height, width, channels]`` of one picture, or of several glued together.

    ML-Agents sends more than three channels as several pictures in a row.
    """
    simple = _read_simple(data)
    if simple is not None:
        return simple
    starts = [0]
    while (following := data.find(SIGNATURE, starts[-1] + 1)) > 0:
        starts.append(following)
    parts = [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]
    return np.concatenate([_read_any(part) for part in parts], axis=2)


def _read_simple(data: bytes) -> np.ndarray | None:
    """The picture if it is of the kind that `write_png` makes, else None."""
    if data[:8] != SIGNATURE or len(data) < 57:
        return None
    width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    channels = next((n for n, name in COLOURS.items() if name == colour), 0)
    (length,) = struct.unpack_from(">I", data, 33)
    one_block = data[37:41] == b"IDAT" and len(data) == 57 + length
    if depth != 8 or interlaced or not channels or not one_block:
        return None
    pixels = zlib.decompress(memoryview(data)[41 : 41 + length])
    rows = np.frombuffer(pixels, np.uint8).reshape(height, 1 + width * channels)
    if rows[:, 0].any():
        return None
    return rows[:, 1:].reshape(height, width, channels)


def _read_any(data: bytes) -> np.ndarray:
    from PIL import Image

    picture = np.asarray(Image.open(io.BytesIO(data)))
    return picture[:, :, None] if picture.ndim == 2 else picture
