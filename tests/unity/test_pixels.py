import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from rllib_conspec.unity.pixels import PngFiles, StoredPicture


def noise(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 4))
def test_what_is_written_is_read(height, width, channels):
    picture = noise(height, width, channels)
    files = PngFiles(picture.shape)
    for each in (picture, 255 - picture):
        assert np.array_equal(files.read(files.write(each)), each)


@pytest.mark.parametrize("shape", [(84, 84, 3), (20, 30, 1), (200, 300, 3)])
def test_pillow_reads_what_is_written(shape):
    """As mlagents-envs does; the last one is too large to be stored."""
    picture = noise(*shape)
    with Image.open(io.BytesIO(PngFiles(shape).write(picture))) as image:
        image.verify()
    read = np.asarray(Image.open(io.BytesIO(PngFiles(shape).write(picture))))
    assert np.array_equal(read.reshape(shape), picture)


@pytest.mark.parametrize("shape", [(84, 84, 3), (20, 30), (20, 30, 4)])
def test_what_pillow_writes_is_read(shape):
    """Unity's pictures are compressed and filtered like Pillow's."""
    picture = noise(*shape)
    picture[:10] = 7
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "png")
    expected = picture.reshape(*shape[:2], -1)
    assert np.array_equal(PngFiles(expected.shape).read(file.getvalue()), expected)


def test_a_stored_picture_is_told_from_others():
    picture, files = noise(8, 8, 3), StoredPicture((8, 8, 3))
    data = files.write(picture)
    assert np.array_equal(files.read(data), picture)
    filtered = bytearray(data)
    filtered[data.index(picture[0, 0].tobytes()) - 1] = 1
    assert files.read(bytes(filtered)) is None
    assert files.read(data[:-1]) is None
    assert StoredPicture((8, 8, 4)).read(data) is None
    assert StoredPicture((4, 16, 3)).read(data) is None
    assert not StoredPicture((8, 8, 7)).possible


def test_pictures_in_a_row_are_channels_of_one():
    left, right = noise(84, 84, 3), 255 - noise(84, 84, 3)
    files = PngFiles((84, 84, 6))
    written = PngFiles((84, 84, 3))
    read = files.read(written.write(left) + written.write(right))
    assert np.array_equal(read, np.concatenate([left, right], axis=2))


def test_a_broken_picture_is_an_error():
    with pytest.raises(OSError):
        PngFiles((5, 5, 3)).read(PngFiles((5, 5, 3)).write(noise(5, 5, 3))[:40])
