import numpy as np
from PIL import Image
from told import episode, row

from rllib_conspec.report.gallery import draw_gallery

RNG = np.random.default_rng(0)
GREEN = np.array([0, 200, 0], dtype=np.uint8)


def pixels(path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"))


def frames_of(colour, count=4):
    frames = np.zeros((12, 6, 6, 3), dtype=np.uint8)
    frames[5] = colour
    return row([episode(frames) for _ in range(count)], [5] * count)


def share_of(colour, path) -> float:
    return float((pixels(path) == colour).all(axis=-1).mean())


def test_every_row_is_drawn(tmp_path):
    rows = [frames_of(GREEN)]
    small = pixels(draw_gallery(rows, tmp_path / "one.png"))
    large = pixels(draw_gallery(rows * 3, tmp_path / "three.png"))
    assert large.shape[0] > 1.8 * small.shape[0]


def test_the_frame_of_the_moment_is_shown(tmp_path):
    shown = draw_gallery([frames_of(GREEN)], tmp_path / "a.png")
    few = draw_gallery([frames_of(GREEN, count=2)], tmp_path / "b.png")
    assert share_of(GREEN, shown) > 0.1
    assert share_of(GREEN, few) < 0.6 * share_of(GREEN, shown)


def test_no_more_than_six_are_shown(tmp_path):
    many = draw_gallery([frames_of(GREEN, count=20)], tmp_path / "a.png")
    six = draw_gallery([frames_of(GREEN, count=6)], tmp_path / "b.png")
    assert share_of(GREEN, many) == share_of(GREEN, six)


def test_renders_take_the_place_of_observations(tmp_path):
    rows = [frames_of(np.array([0, 0, 250]))]
    blue = rows[0].moments[0]
    renders = {(blue.episode, 5): np.tile(GREEN, (40, 40, 1))}
    path = draw_gallery(rows, tmp_path / "a.png", renders=renders)
    assert 0.2 < share_of(GREEN, path) / share_of([0, 0, 250], path) < 0.5  # one of four


def test_vectors_are_bars_as_long_as_their_values(tmp_path):
    def drawn(value):
        frames = RNG.normal(size=(12, 6)) * 0.01
        frames[:, 0] = 1  # the scale
        frames[5, 3] = value
        path = draw_gallery([row([episode(frames)], [5])], tmp_path / "a.png", names=["x"] * 6)
        orange = (np.abs(pixels(path).astype(int) - [255, 127, 14]) < 8).all(axis=-1)
        return orange.sum()

    assert drawn(1.0) > 1.5 * drawn(0.02) > 0


def test_nothing_to_show_is_drawn_too(tmp_path):
    assert draw_gallery([row([], [])], tmp_path / "a.png").exists()
