import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from rllib_conspec.unity import pixels


def noise(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 4))
def test_what_is_written_is_read(height, width, channels):
    picture = noise(height, width, channels)
    assert np.array_equal(pixels.read_png(pixels.write_png(picture)), picture)


@pytest.mark.parametrize("shape", [(84, 84, 3), (20, 30, 1), (200, 300, 3)])
def test_pillow_reads_what_is_written(shape):
    """As mlagents-envs does; pictures above 64 kB are written in another way."""
    picture = noise(*shape)
    read = np.asarray(Image.open(io.BytesIO(pixels.write_png(picture))))
    assert np.array_equal(read.reshape(shape), picture)


@pytest.mark.parametrize("shape", [(84, 84, 3), (20, 30), (20, 30, 4)])
def test_what_pillow_writes_is_read(shape):
    """Unity's pictures are compressed and filtered like Pillow's."""
    picture = noise(*shape)
    picture[:10] = 7
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "png")
    read = pixels.read_png(file.getvalue())
    assert np.array_equal(read, picture.reshape(*shape[:2], -1))


def test_pictures_in_a_row_are_channels_of_one():
    left, right = noise(84, 84, 3), 255 - noise(84, 84, 3)
    read = pixels.read_png(pixels.write_png(left) + pixels.write_png(right))
    assert np.array_equal(read, np.concatenate([left, right], axis=2))


def test_a_broken_picture_is_an_error():
    with pytest.raises(OSError):
        pixels.read_png(pixels.write_png(noise(5, 5, 3))[:40])
