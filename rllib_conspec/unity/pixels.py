"""Pictures as ML-Agents sends them when they are compressed: PNG.

Pillow reads every PNG. The built-in player writes the simplest kind: 8 bits a channel, rows as they
are, stored instead of compressed, because on one host memory is faster than compression. That kind
is read here in place, without Pillow.
"""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}  # PNG's name for that many channels
CHANNELS = {name: channels for channels, name in COLOURS.items()}
# The data of a stored picture: zlib's header, then one last block that is not compressed.
STORED = b"\x78\x01\x01"
LARGEST_BLOCK = 0xFFFF
BODY = 41  # where the data begins: after the signature, the header's chunk and the length and kind


def write_png(picture: np.ndarray) -> bytes:
    """``picture`` is uint8 ``[height, width, channels]``."""
    height, width, channels = picture.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # 0: the row is not filtered
    rows[:, 1:] = picture.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, COLOURS[channels], 0, 0, 0)
    if rows.size > LARGEST_BLOCK:
        body = zlib.compress(rows, 1)
    else:
        size = struct.pack("<HH", rows.size, rows.size ^ 0xFFFF)
        body = b"".join((STORED, size, rows, struct.pack(">I", zlib.adler32(rows))))
    return b"".join((SIGNATURE, *_chunk(b"IHDR", header), *_chunk(b"IDAT", body), *_END))


def _chunk(kind: bytes, data: bytes) -> tuple[bytes, ...]:
    check = zlib.crc32(data, zlib.crc32(kind))
    return struct.pack(">I", len(data)), kind, data, struct.pack(">I", check)


_END = _chunk(b"IEND", b"")


def read_png(data: bytes) -> np.ndarray:
    """uint8 ``[height, width, channels]`` of one picture, or of several glued together.

    ML-Agents sends more than three channels as several pictures in a row.
    """
    stored = _read_stored(data)
    if stored is not None:
        return stored
    starts = [0]
    while (following := data.find(SIGNATURE, starts[-1] + 1)) > 0:
        starts.append(following)
    parts = [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]
    return np.concatenate([_read_any(part) for part in parts], axis=2)


def _read_stored(data: bytes) -> np.ndarray | None:
    """The picture in place if it is of the kind that `write_png` makes, else None."""
    if data[:8] != SIGNATURE or data[BODY - 4 : BODY + 3] != b"IDAT" + STORED:
        return None
    width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    channels = CHANNELS.get(colour, 0)
    size = height * (1 + width * channels)
    # After the pixels come two check sums and the chunk that ends the picture.
    if depth != 8 or interlaced or not channels or len(data) != BODY + 7 + size + 8 + 12:
        return None
    first = BODY + 7
    if any(data[first : first + size : size // height]):  # a row is filtered
        return None
    rows = np.frombuffer(data, np.uint8, size, first).reshape(height, -1)
    return rows[:, 1:].reshape(height, width, channels)


def _read_any(data: bytes) -> np.ndarray:
    from PIL import Image

    picture = np.asarray(Image.open(io.BytesIO(data)))
    return picture[:, :, None] if picture.ndim == 2 else picture
