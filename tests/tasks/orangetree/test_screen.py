import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from rllib_conspec.tasks.orangetree.screen import (
    ALONG,
    NEAR,
    REACH,
    SIZE,
    U,
    V,
    darker,
    pack,
    screen_box,
    unpack,
)


def number(low, high):
    return st.floats(low, high, allow_nan=False)


@given(
    ahead=number(-6, 9),
    aside=number(-9, 9),
    radius=number(0.05, 1.4),
    low=number(-1.5, 1),
    tall=number(0, 2),
    around=number(0, 2 * np.pi),
    out=number(0, 1),
    up=number(0, 1),
)
def test_every_point_of_a_thing_is_inside_its_box(ahead, aside, radius, low, tall, around, out, up):
    depth = ahead + out * radius * np.cos(around)
    assume(depth > NEAR)
    column = ((aside + out * radius * np.sin(around)) / depth / REACH + 1) * SIZE / 2
    row = (1 - (low + up * tall) / depth / REACH) * SIZE / 2
    assume(0 <= column < SIZE and 0 <= row < SIZE)
    box = screen_box(ahead, aside, radius, low, low + tall)
    assert box is not None
    rows, columns = box
    # A hair's breadth beyond the edge has no pixel centre in it.
    assert rows.start - 1e-6 <= row <= rows.stop + 1e-6
    assert columns.start - 1e-6 <= column <= columns.stop + 1e-6


def test_a_box_is_no_larger_than_it_must_be():
    rows, columns = screen_box(4.0, 0.0, 0.5, -1.0, -0.5)
    assert columns.stop - columns.start <= 14
    assert rows.stop - rows.start <= 9
    assert screen_box(-2.0, 0.0, 0.5, -1.0, 0.0) is None
    assert screen_box(2.0, 5.0, 0.5, -1.0, 0.0) is None


def test_the_view_is_90_degrees_wide_and_symmetric():
    assert np.allclose(U, -U[::-1]) and np.allclose(V, -V[::-1])
    assert U[0] < 0 < V[0]
    edge = np.degrees(np.arctan2(U[-1], 1)) + np.degrees(np.arctan2(U[-1] - U[-2], 2))
    assert 44 < edge < 45.5
    assert np.allclose(ALONG[0, :, 0], U) and np.allclose(ALONG[0, :, 1], 1)
    assert np.abs(ALONG).min() > 0


def test_colours_survive_packing():
    colours = np.random.default_rng(0).integers(256, size=(SIZE, SIZE, 3), dtype=np.uint8)
    out = np.zeros_like(colours)
    unpack(pack(colours), out)
    assert np.array_equal(out, colours)
    unpack(pack(np.full((SIZE, SIZE, 3), 300.0)), out)
    assert (out == 255).all()


def test_darker_is_five_eighths_of_each_channel():
    colours = np.random.default_rng(1).integers(256, size=(SIZE, SIZE, 3), dtype=np.uint8)
    out = np.zeros_like(colours)
    unpack(darker(pack(colours)), out)
    assert np.abs(out - colours * 0.625).max() < 2
