"""DrAC: pictures in other colours, and the loss against its formula."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from painted import OBJECTS, ROOM, Policy, pictures

from rllib_conspec.auxiliary.base import PolicyBatch
from rllib_conspec.auxiliary.drac import Curves, DrAC, DrACOptions, draw_some, shift_colours
from rllib_conspec.errors import OptionError
from rllib_conspec.networks.encoders import build_encoder

# --- other colours ----------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 4))
def test_pictures_are_what_the_curves_make_of_every_pixel_one_by_one(seed, count, depth):
    before = pictures(count, 5, 6, depth)
    torch.manual_seed(seed)
    after = shift_colours(before)
    assert (after.shape, after.dtype) == (before.shape, before.dtype)
    torch.manual_seed(seed)
    curves, order = Curves(count, depth, 255.0, None), torch.rand(count, depth).argsort(-1)
    expected = np.empty(before.shape)
    for n, y, x, c in np.ndindex(before.shape):
        source = int(order[n, c])
        expected[n, y, x, c] = literal(curves, n, source, int(before[n, y, x, source]))
    # Brightness is rounded down, which float32 and Python may do differently near a whole number.
    off = after.numpy() - expected
    assert (off > -1.001).all() and (off < 0.001).all()


def literal(curves, n, c, value):
    """One value by the curve of one channel of one picture."""
    if not curves.waves[n]:
        return 255 - value if value > curves.threshold[n, c] else value
    # A triangle wave: up to 255 and down again, and so on.
    on = float(curves.slope[n, c]) * value + float(curves.phase[n, c])
    up_and_down = on % 510
    return up_and_down if up_and_down <= 255 else 510 - up_and_down


@given(st.integers(0, 2**31), st.sampled_from([torch.uint8, torch.float32]))
def test_what_has_one_colour_has_one_colour_afterwards(seed, dtype):
    palette = pictures(6, 3, dtype=dtype)
    painted = torch.randint(6, (4, 7, 8), generator=torch.Generator().manual_seed(2))
    torch.manual_seed(seed)
    after = shift_colours(palette[painted])
    for picture, where in zip(after, painted, strict=True):
        for number in range(6):
            assert len(picture[where == number].unique(dim=0)) <= 1


@pytest.fixture(scope="module")
def shifted():
    """The colours of 20,000 pictures, each of which has all of them: [20000, 8, rgb]."""
    torch.manual_seed(0)
    picture = torch.cat([OBJECTS, ROOM]).to(torch.uint8)
    return shift_colours(picture.expand(20_000, 1, 8, 3))[:, 0].long()


def test_every_colour_becomes_any_colour(shifted):
    """Each of the 64 cells of the colour cube, grey included, which a curve for all channels alike
    would leave grey.
    """
    cells = shifted // 64 @ torch.tensor([16, 4, 1])
    for colour in cells.T:
        shares = torch.bincount(colour, minlength=64) / len(colour)
        assert shares.min() > 0.004  # of 1/64, half of which are waves: 0.008 on average


def test_dark_objects_are_common(shifted):
    """By inversion, if all of a colour is far from the middle; by waves, one in 250 of any."""
    dark = (shifted[:, :6] < 50).all(-1).float().mean(0)
    assert dark.mean() > 0.05 and dark.min() > 0.002


def test_objects_stay_visible_before_wall_and_floor(shifted):
    things, room = shifted[:, :6, None], shifted[:, None, 6:]
    nearest = (things - room).abs().amax(-1)  # in the channel in which they differ most
    assert (nearest < 20).float().mean() < 0.003
    assert ((shifted[:, 6] - shifted[:, 7]).abs().amax(-1) < 20).float().mean() < 0.003


def test_half_of_the_pictures_are_solarised_and_waves_take_all_values_equally_often():
    torch.manual_seed(0)
    curves = Curves(20_000, 1, 255.0, None)
    waves = curves.waves.flatten()
    assert waves.float().mean() == pytest.approx(0.5, abs=0.02)
    for value in (0.0, 100.0, 250.0):
        after = curves(torch.full((20_000, 1, 1), value)).flatten()
        assert set(after[~waves].tolist()) == {value, 255 - value}
        shares = torch.histc(after[waves], 8, 0, 255) / waves.sum()
        assert ((shares - 1 / 8).abs() < 0.015).all()


def test_a_sequence_keeps_its_colours():
    frame = pictures(1, 1, 4, 4, 3)
    torch.manual_seed(0)
    after = shift_colours(frame.expand(8, 7, 4, 4, 3))
    for sequence in after:
        assert all(torch.equal(sequence[0], other) for other in sequence)
    assert any(not torch.equal(after[0], other) for other in after)


@pytest.mark.parametrize("seeds", [(3, 3), (3, 4)])
def test_the_seed_decides(seeds):
    results = []
    for seed in seeds:
        torch.manual_seed(seed)
        results.append(shift_colours(pictures(16, 3, 3, 3)))
    assert torch.equal(*results) == (seeds[0] == seeds[1])


def test_channels_may_come_first():
    before = pictures(4, 2, 5, 6, 3)
    torch.manual_seed(0)
    expected = shift_colours(before)
    torch.manual_seed(0)
    after = shift_colours(before.permute(0, 1, 4, 2, 3), channels="first")
    assert torch.equal(after.permute(0, 1, 3, 4, 2), expected)


def test_pictures_may_have_another_range():
    before = pictures(16, 5, 6, 3, dtype=torch.float32)
    torch.manual_seed(0)
    expected = shift_colours(before) / 255
    torch.manual_seed(0)
    torch.testing.assert_close(shift_colours(before / 255, brightest=1.0), expected)


# --- the loss ---------------------------------------------------------------------------------


def loss_of(batch, policy, seed=7, **values):
    torch.manual_seed(seed)
    return DrAC(DrACOptions(**values), policy.encoder).loss(batch)


@pytest.mark.parametrize("shape", [(6, 4), (6,)])
@pytest.mark.parametrize("masked", [True, False])
def test_the_loss_is_the_formula(shape, masked):
    """KL to the policy on the pictures as they are and half the squared change of the value, by
    hand, over the rows that were drawn; padding does not count.
    """
    torch.manual_seed(0)
    policy, frames = Policy(), pictures(*shape, 5, 5, 3)
    mask = torch.rand(shape) < 0.6 if masked else None
    batch = policy.batch(frames, mask)
    loss = loss_of(batch, policy, coeff=0.5)
    torch.manual_seed(7)
    some, weight = draw_some(batch)
    inputs, values = policy(shift_colours(some.observations))
    terms = []
    for where in (torch.ones(values.shape) if mask is None else some.mask).nonzero().tolist():
        at = tuple(where)
        p, q = some.inputs[at].softmax(-1), inputs[at].softmax(-1)
        divergence = sum(a * torch.log(a / b) for a, b in zip(p, q, strict=True))
        terms.append(divergence + (some.values[at] - values[at]) ** 2 / 2)
    torch.testing.assert_close(loss, 0.5 * weight * torch.stack(terms).mean())
    assert loss > 0


def steps_of(mask, shape):
    """A batch whose values are the numbers of its steps, to see which were drawn."""
    numbers = torch.arange(float(np.prod(shape))).reshape(shape)
    return PolicyBatch(numbers, mask, numbers, numbers, forward=None, kl=None, policy=None)


@pytest.mark.parametrize(
    ("shape", "drawn"), [((8, 5), 2), ((9, 5), 3), ((3, 5), 1), ((1, 5), 1), ((40,), 10)]
)
def test_a_quarter_of_the_rows_is_drawn_whole_and_at_least_one(shape, drawn):
    batch = steps_of(None, shape)
    some, weight = draw_some(batch)
    assert some.values.shape == (drawn, *shape[1:])
    rows = some.values.reshape(drawn, -1)[:, 0] // int(np.prod(shape[1:]))
    assert len(rows.unique()) == drawn
    assert torch.equal(some.values, batch.values[rows.long()])
    assert weight == 1


def test_rows_of_padding_alone_are_not_drawn():
    mask = torch.zeros(20, dtype=torch.bool)
    mask[[3, 7, 8, 11]] = True
    for seed in range(20):
        torch.manual_seed(seed)
        some, _ = draw_some(steps_of(mask, (20,)))
        assert set(some.values.tolist()) < {3.0, 7.0, 8.0, 11.0} and some.mask.all()


@pytest.mark.parametrize("masked", [True, False])
def test_the_mean_over_what_is_drawn_is_right_on_average(masked):
    """Sequences of 1 to 5 steps, of which long ones have larger values."""
    mask = torch.arange(5) < torch.arange(1, 6)[:, None] if masked else None
    batch = steps_of(mask, (5, 5))
    torch.manual_seed(0)
    means = torch.stack([w * some.mean(some.values) for some, w in map(draw_some, [batch] * 4000)])
    assert means.mean() == pytest.approx(float(batch.mean(batch.values)), rel=0.02)


def test_what_the_policy_does_on_the_pictures_as_they_are_gets_no_gradient():
    torch.manual_seed(0)
    policy = Policy()
    batch = policy.batch(pictures(6, 5, 5, 3))
    loss = loss_of(batch, policy)
    for output in (batch.inputs, batch.values):
        (gradient,) = torch.autograd.grad(loss, [output], retain_graph=True, allow_unused=True)
        assert gradient is None
    loss.backward()
    assert all(p.grad.abs().max() > 0 for p in policy.parameters())


def test_pictures_are_read_as_the_encoder_reads_them():
    """The same pictures in another layout and range have the same loss."""
    torch.manual_seed(0)
    plain = Policy()
    other = Policy(channels="first", observation_range=1.0)
    weights = {k: v for k, v in plain.state_dict().items() if "range" not in k}
    other.load_state_dict(weights, strict=False)
    frames = pictures(6, 5, 5, 3, dtype=torch.float32)  # bytes would be rounded
    moved = frames.permute(0, 3, 1, 2) / 255
    found = loss_of(other.batch(moved), other)
    torch.testing.assert_close(found, loss_of(plain.batch(frames), plain))


@pytest.mark.parametrize("name", ["conv", "impala", "strided", "mlp"])
def test_every_encoder_says_how_it_reads(name):
    encoder = build_encoder(name, (3, 24, 20), 4, observation_range=9.0, channels="first")
    assert DrAC(DrACOptions(), encoder).view == {"brightest": 9.0, "channels": "first"}


def test_it_has_no_parameters_of_its_own():
    assert list(DrAC(DrACOptions(), Policy().encoder).parameters()) == []


# --- options ----------------------------------------------------------------------------------


def test_the_weight_must_be_more_than_nothing():
    assert DrACOptions().coeff == 0.2
    for value in (0.0, -1.0, "much"):
        with pytest.raises(OptionError) as error:
            DrACOptions(coeff=value)
        assert error.value.option == "coeff"


def test_vectors_have_no_colours():
    DrAC.check(DrACOptions(), (5, 5, 3))
    with pytest.raises(OptionError, match="is for pictures") as error:
        DrAC.check(DrACOptions(), (17,))
    assert error.value.option == "coeff"
