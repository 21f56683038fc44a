import numpy as np
from PIL import Image

from rllib_conspec.report.found import Found, find
from rllib_conspec.report.prototypes import FRAMES, _varied, draw_prototypes


def found(frames: np.ndarray, prototype: int = 0) -> Found:
    count = len(frames)
    return Found(prototype, np.arange(count), np.linspace(1, 0.7, count), frames, 0.9, {})


def test_draws_a_row_for_every_prototype(learner, tmp_path):
    one = find(learner)[:1]
    small = Image.open(draw_prototypes(one, tmp_path / "one.png"))
    large = Image.open(draw_prototypes(one * 3, tmp_path / "three.png"))
    assert large.height > 1.8 * small.height
    assert np.asarray(small).std() > 10  # something is drawn


def test_different_frames_come_before_repeats():
    frames = np.zeros((8, 2, 2, 3), dtype=np.uint8)
    frames[5], frames[7] = 50, 90
    assert _varied(found(frames)) == [0, 5, 7, 1, 2, 3]
    assert len(_varied(found(frames[:2]))) == 2 <= FRAMES


def test_vector_observations_are_drawn_too(tmp_path):
    values = np.random.default_rng(0).normal(size=(4, 6))
    picture = draw_prototypes([found(values)], tmp_path / "vector.png")
    assert Image.open(picture).width > 500
