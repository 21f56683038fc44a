"""Pictures in other paint: pixel by pixel as a slow version does it, and what is to be kept."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rllib_conspec.networks.palette import (
    ALIKE,
    ANCHORS,
    DIM,
    LIFT,
    PARTLY,
    SHADE,
    STAYS,
    draw_palette,
    repaint,
    tones,
)
from rllib_conspec.tasks.orangetree.layout import COLOURS, FLOOR_BLUE, GREY

OBJECTS = torch.tensor(list(COLOURS.values()))
ROOM = torch.tensor([GREY, FLOOR_BLUE])
LIGHTS = torch.tensor([0.66, 0.86, 1.0])  # on the sides of a thing


def pictures(*shape, dtype=torch.uint8):
    return torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


def tone(colour):
    brightest = max(colour)
    return [*(c / (brightest + DIM) for c in colour), SHADE * sum(colour) / len(colour)]


def literal(pixels, anchors, paint):
    """Pixels [P, channels] in 0..1: each in the paint of its nearest anchor, as bright as it is."""
    painted = np.empty(pixels.shape)
    for p, colour in enumerate(pixels.tolist()):
        far = [
            sum((x - y) ** 2 for x, y in zip(tone(colour), tone(other), strict=True))
            for other in anchors.tolist()
        ]
        light = sum(colour) / len(colour) + LIFT
        painted[p] = [min(light * c, 1.0) for c in paint[int(np.argmin(far))].tolist()]
    return painted


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 4))
def test_pictures_are_painted_pixel_by_pixel(seed, count, depth):
    before = pictures(count, 5, 6, depth)
    torch.manual_seed(seed)
    after = repaint(before)
    assert (after.shape, after.dtype) == (before.shape, before.dtype)
    torch.manual_seed(seed)
    anchors, paint = draw_palette(before.flatten(1, -2), 255.0)
    for n in range(count):
        expected = 255 * literal(before[n].flatten(0, 1) / 255, anchors[n], paint[n])
        # Brightness is rounded down, which float32 and Python may do differently near a whole
        # number; a pixel between two anchors may go to either.
        off = after[n].flatten(0, 1).numpy() - expected
        assert ((off > -1.001) & (off < 0.001)).all(-1).mean() > 0.95


@given(st.integers(0, 2**31), st.integers(1, 4))
def test_anchors_are_pixels_and_anchors_of_one_colour_have_one_paint(seed, depth):
    some = pictures(6, depth).float()
    pixels = some[torch.randint(6, (3, 40), generator=torch.Generator().manual_seed(seed))]
    torch.manual_seed(seed)
    anchors, paint = draw_palette(pixels, 255.0)
    assert anchors.shape == paint.shape == (3, ANCHORS, depth)
    for own, known, new in zip(anchors, pixels, paint, strict=True):
        assert all((known / 255 - a).abs().sum(-1).min() < 1e-5 for a in own)
        for i, j in np.ndindex(ANCHORS, ANCHORS):
            if torch.equal(own[i], own[j]):
                assert torch.equal(new[i], new[j])


def many(colours, count=4000):
    """The new colours of many pictures, each of which has all of these: [count, n, rgb]."""
    torch.manual_seed(0)
    picture = colours.to(torch.uint8).repeat(20, 1)  # so that most are an anchor's colour
    return repaint(picture.expand(count, 1, len(picture), 3))[:, 0, : len(colours)].long()


SOME = torch.cat([OBJECTS[:2], ROOM])


@pytest.fixture(scope="module")
def repainted():
    return many(SOME)


@pytest.fixture(scope="module")
def changed(repainted):
    """Where a colour did not stay what it was, or hardly: bool [count, n]."""
    return (repainted - SOME).abs().amax(-1) > 8


def test_colours_become_any_colour(repainted, changed):
    """Each of the 64 cells of the colour cube; every brightness equally often."""
    cells = repainted // 64 @ torch.tensor([16, 4, 1])
    for thing, new in enumerate(changed.T):
        shares = torch.bincount(cells[new, thing], minlength=64) / new.sum()
        assert shares.min() > 0.1 / 64
        shares = torch.bincount(repainted[new, thing].amax(-1) // 64, minlength=4) / new.sum()
        assert shares.min() > 0.17 and shares.max() < 0.33


def test_in_some_pictures_some_things_stay_as_they_are(changed):
    torch.testing.assert_close(
        1 - changed.float().mean(0), torch.full((4,), PARTLY * STAYS), atol=0.04, rtol=0
    )
    everything = 1 - PARTLY + PARTLY * (1 - STAYS) ** 4
    assert abs(changed.all(1).float().mean() - everything) < 0.05


def test_a_small_thing_has_a_paint_of_its_own():
    """Of 2 % of a picture: what is behind it has little to do with its new colour."""
    picture = ROOM[1].repeat(500, 1)
    picture[:10] = OBJECTS[2]
    torch.manual_seed(0)
    new = repaint(picture.to(torch.uint8).expand(2000, 1, 500, 3))[:, 0].long()
    apart = (new[:, 0] - new[:, -1]).abs().amax(-1) > 8
    assert apart.float().mean() > 0.95
    assert abs(alike(new[:, 0], new[:, -1])) < 0.2


@given(st.integers(0, 2**31), st.integers(1, 8))
def test_no_colour_of_a_picture_is_without_an_anchor(seed, colours):
    generator = torch.Generator().manual_seed(seed)
    known = torch.randint(256, (colours, 3), generator=generator).float()
    pixels = known[torch.randint(colours, (2, 300), generator=generator)]
    anchors, _ = draw_palette(pixels, 255.0, generator)
    for own, picture in zip(anchors, pixels, strict=True):
        assert torch.cdist(tones(picture / 255), tones(own)).amin(-1).max() <= ALIKE + 1e-6


def test_a_generator_of_ones_own_draws_the_same_again_and_leaves_the_global_one_alone():
    before = pictures(4, 6, 6, 3)
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    one, other = (repaint(before, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(one, other) and not torch.equal(one, before)
    assert torch.equal(torch.rand(2), expected)


def alike(one, other):
    return float(torch.corrcoef(torch.stack([one.flatten(), other.flatten()]).float())[0, 1])


def test_new_colours_of_different_things_have_little_to_do_with_each_other(repainted):
    for one, other in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
        assert abs(alike(repainted[:, one], repainted[:, other])) < 0.25


@pytest.mark.parametrize("thing", range(len(OBJECTS)))
def test_a_thing_stays_one_thing_in_light_and_shade(thing):
    """Its sides have one new colour, and the brightest one stays the brightest."""
    sides = OBJECTS[thing] * LIGHTS[:, None]
    new = many(torch.cat([sides, ROOM]))[:, :3].float()
    for side in (0, 1):
        assert alike(new[:, side], new[:, 2]) > 0.8
        brighter = new[:, 2].sum(-1) >= new[:, side].sum(-1)
        assert brighter.float().mean() > 0.85


def test_sequences_keep_their_colours_and_channels_may_come_first():
    frame = pictures(1, 1, 4, 4, 3)
    torch.manual_seed(0)
    after = repaint(frame.expand(8, 7, 4, 4, 3)).float()
    for sequence in after:
        assert all((sequence[0] - other).abs().max() <= 1 for other in sequence)
    assert any((after[0] - other).abs().max() > 50 for other in after)
    torch.manual_seed(0)
    first = repaint(frame.expand(8, 7, 4, 4, 3).permute(0, 1, 4, 2, 3), channels="first")
    assert torch.equal(first.permute(0, 1, 3, 4, 2).float(), after)


def test_pictures_may_have_another_range():
    before = pictures(16, 5, 6, 3, dtype=torch.float32)
    torch.manual_seed(0)
    expected = repaint(before) / 255
    torch.manual_seed(0)
    found = repaint(before / 255, brightest=1.0)
    assert (found - expected).abs().amax(-1).lt(1e-4).float().mean() > 0.99


def test_large_batches_are_painted_as_small_ones_are(monkeypatch):
    before = pictures(9, 8, 8, 3)
    torch.manual_seed(0)
    expected = repaint(before)
    monkeypatch.setattr("rllib_conspec.networks.palette.PIXELS", 130)
    torch.manual_seed(0)
    assert torch.equal(repaint(before), expected)
