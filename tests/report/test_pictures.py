import numpy as np
import pytest

from rllib_conspec.report.pictures import to_picture

RNG = np.random.default_rng(0)


def test_ordinary_pictures_stay_as_they_are():
    frame = RNG.integers(0, 256, (9, 12, 3), dtype=np.uint8)
    assert (to_picture(frame) == frame).all()
    assert (to_picture(np.moveaxis(frame, -1, 0), "first") == frame).all()
    assert (to_picture(np.moveaxis(frame, -1, 0)) == frame).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
def test_grids_that_count_to_ten_are_bright(dtype):
    grid = RNG.integers(0, 11, (7, 7, 3)).astype(dtype)
    grid[0, 0, 0] = 10
    picture = to_picture(grid)
    assert picture.dtype == np.uint8 and picture.max() == 255
    assert picture.mean() > 80  # unstretched: 5
    assert (picture[grid == 0] == 0).all()


def test_values_below_zero_are_shown_too():
    picture = to_picture(np.array([[-1.0, 0.0], [0.5, 1.0]]))
    assert picture[..., 0].tolist() == [[0, 128], [191, 255]]


def test_of_a_stack_of_grey_frames_the_newest_is_shown():
    stack = RNG.integers(0, 256, (4, 84, 84), dtype=np.uint8)
    for picture in (to_picture(stack, "first"), to_picture(np.moveaxis(stack, 0, -1), "last")):
        assert (picture == stack[-1][..., None]).all() and picture.shape == (84, 84, 3)


def test_of_a_stack_of_colour_frames_the_newest_is_shown():
    stack = RNG.integers(0, 256, (12, 12, 6), dtype=np.uint8)
    assert (to_picture(stack) == stack[..., 3:]).all()
    assert (to_picture(stack.reshape(2, 12, 12, 3)) == stack.reshape(2, 12, 12, 3)[1]).all()


def test_one_channel_is_grey():
    grey = RNG.integers(0, 256, (8, 8, 1), dtype=np.uint8)
    assert (to_picture(grey) == grey).all() and to_picture(grey).shape == (8, 8, 3)
    assert (to_picture(grey[..., 0]) == grey).all()


def test_a_black_picture_stays_black():
    assert not to_picture(np.zeros((5, 5, 3))).any()


def test_a_vector_has_no_picture():
    assert to_picture(np.zeros(5)) is None
