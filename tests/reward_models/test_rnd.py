"""RND against its formulas, frame by frame; what it must and must never do."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import flat

from rllib_conspec.episodes import Episode
from rllib_conspec.errors import OptionError
from rllib_conspec.reward_models import find_model, options_of
from rllib_conspec.reward_models import rnd as module
from rllib_conspec.reward_models.base import Setting
from rllib_conspec.reward_models.rnd import RND, RNDOptions

VECTORS = spaces.Box(-np.inf, np.inf, (3,), np.float32)
PICTURES = spaces.Box(0, 255, (4, 3, 2), np.uint8)
SMALL = {"dim": 6, "lr": 0.01, "minibatch": 5}


def model(space=VECTORS, *, seed=0, gamma=0.9, **options) -> RND:
    setting = Setting(space, spaces.Discrete(2), gamma, seed=seed)
    return RND(RNDOptions(**(SMALL | options)), setting)


def episode(observations) -> Episode:
    steps = len(observations) - 1
    return Episode(np.asarray(observations), np.zeros(steps, int), np.zeros(steps, np.float32))


def random_episodes(rng, space=VECTORS, count=4, longest=7) -> list[Episode]:
    """Frames of a small pool, so that many are equal, within and across episodes."""
    if space is PICTURES:
        pool = rng.integers(0, 256, (6, *space.shape), dtype=np.uint8)
        pool[:, 0] = 7  # pixels that never change
    else:
        pool = rng.normal(3.0, 2.0, (6, *space.shape)).astype(np.float32)
    lengths = rng.integers(1, longest + 1, count)
    return [episode(pool[rng.integers(len(pool), size=n + 1)]) for n in lengths]


def learn(rnd, episodes):
    return rnd.update([(None, e) for e in episodes])


def trained(rnd, batches=3, seed=1, space=VECTORS):
    rng = np.random.default_rng(seed)
    for _ in range(batches):
        learn(rnd, random_episodes(rng, space))
    return rnd


def worker(rnd) -> RND:
    """A worker's model with the learner's snapshot as it arrives: in arrays that are read-only."""
    snapshot = pickle.loads(pickle.dumps(rnd.snapshot()))
    for array in snapshot["networks"].values():
        array.flags.writeable = False
    own = RND(rnd.options, rnd.setting)
    own.load(snapshot)
    return own


def literal(networks, options, gamma, rng, batches):
    """The formulas of the module's docstring, a frame at a time, with everything ever seen kept.

    Returns what a step to a frame is paid after these batches.
    """
    optimizer = torch.optim.Adam(networks.predictor.parameters(), lr=options.lr)
    seen, sums, s = [], [], 0.0

    def error(frame):
        mean = np.mean(seen, axis=0, dtype=np.float64)
        std = np.maximum(np.std(seen, axis=0, dtype=np.float64), 1e-6)
        x = torch.from_numpy(np.clip((frame.astype(np.float64) - mean) / std, -5, 5))[None]
        return (networks.predictor(x) - networks.target(x)).square().mean()

    for batch in batches:
        frames = [frame for e in batch for frame in e.observations[1:]]
        seen += frames
        for frame in frames:
            s = gamma * s + error(frame).item()
            sums.append(s)
        count = max(1, round(options.share * len(frames)))
        drawn = rng.permutation(len(frames))[:count]
        for some in np.array_split(drawn, math.ceil(count / options.minibatch)):
            loss = sum(error(frames[i]) for i in some) / len(some)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return lambda frame: options.coeff * error(frame).item() / np.std(sums)


@given(
    seed=st.integers(0, 10_000),
    space=st.sampled_from([VECTORS, PICTURES]),
    share=st.sampled_from([0.01, 0.3, 1.0]),
    gamma=st.sampled_from([0.0, 0.9, 1.0]),
    batches=st.integers(1, 3),
)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_pays_what_the_formulas_say(seed, space, share, gamma, batches):
    rng = np.random.default_rng(seed)
    rnd = model(space, seed=seed, gamma=gamma, share=share)
    rnd.networks.double()
    networks = copy.deepcopy(rnd.networks)
    given_ = [random_episodes(rng, space) for _ in range(batches)]
    for batch in given_:
        learn(rnd, batch)
    pay = literal(networks, rnd.options, gamma, np.random.default_rng(seed), given_)
    new = random_episodes(rng, space) + given_[0]
    for e, paid in zip(new, rnd.reward(new), strict=True):
        assert paid.dtype == np.float32
        np.testing.assert_allclose(paid, [pay(f) for f in e.frames], rtol=1e-5, atol=1e-9)


def test_frames_in_pieces_are_the_same_frames(monkeypatch):
    def result():
        rnd = trained(model(PICTURES), space=PICTURES)
        return np.concatenate(rnd.reward(random_episodes(np.random.default_rng(5), PICTURES)))

    whole = result()
    monkeypatch.setattr(module, "PIECE", 50)  # two pictures
    np.testing.assert_allclose(result(), whole, rtol=1e-4)


def test_a_worker_pays_as_the_learner_would():
    rnd = trained(model())
    episodes = random_episodes(np.random.default_rng(5))
    for mine, theirs in zip(worker(rnd).reward(episodes), rnd.reward(episodes), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.any()


def test_nothing_is_paid_before_there_is_something_to_compare_with():
    episodes = random_episodes(np.random.default_rng(0))
    for rnd in (model(), worker(model())):  # no snapshot; the snapshot of one that saw nothing
        assert [len(paid) for paid in rnd.reward(episodes)] == [len(e) for e in episodes]
        assert not np.concatenate(rnd.reward(episodes)).any()
    one_step = model()
    learn(one_step, [episode([[0.0] * 3, [1.0] * 3])])  # one sum has no spread
    assert not np.concatenate(one_step.reward(episodes)).any()


def test_no_episodes():
    rnd = trained(model())
    before = flat(rnd.get_state())
    assert learn(rnd, []) == {}
    assert flat(rnd.get_state()) == before
    assert rnd.reward([]) == []


# --- to the digit ------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [VECTORS, PICTURES], ids=["vectors", "pictures"])
def test_restored_it_continues_to_the_digit(space):
    rnd = trained(model(space, share=0.5), space=space)
    saved = pickle.dumps(rnd.get_state())
    other = trained(model(space, share=0.5, seed=99), batches=1, space=space)
    other.set_state(pickle.loads(saved))
    assert flat(other.get_state()) == flat(rnd.get_state())
    for rnd_ in (rnd, other):
        trained(rnd_, batches=2, seed=7, space=space)
    assert flat(other.get_state()) == flat(rnd.get_state())
    assert flat(other.get_state()) != flat(pickle.loads(saved))
    episodes = random_episodes(np.random.default_rng(3), space)
    for mine, theirs in zip(other.reward(episodes), rnd.reward(episodes), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_state_shares_nothing_with_the_model():
    rnd = trained(model())
    state, snapshot = rnd.get_state(), rnd.snapshot()
    before = flat(state), flat(snapshot)
    other = model(seed=5)
    other.set_state(state)
    trained(rnd, batches=1)
    trained(other, batches=1)
    assert (flat(state), flat(snapshot)) == before


def test_learners_with_the_same_seed_stay_equal():
    first, second = trained(model()), trained(model())
    assert flat(first.get_state()) == flat(second.get_state())
    assert flat(trained(model(seed=1)).get_state()) != flat(first.get_state())


def test_the_global_generator_is_left_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    trained(model())
    assert torch.equal(torch.rand(1), expected)


def test_the_target_never_learns():
    rnd = model()
    before = flat(rnd.networks.target.state_dict())
    predictor = flat(rnd.networks.predictor.state_dict())
    trained(rnd)
    assert flat(rnd.networks.target.state_dict()) == before
    assert flat(rnd.networks.predictor.state_dict()) != predictor


# --- what novelty means ------------------------------------------------------------------------


@given(
    st.integers(0, 10_000), st.sampled_from([1e-8, 1.0, 1e8]), st.sampled_from([VECTORS, PICTURES])
)
@settings(max_examples=20, deadline=None, derandomize=True)
def test_pay_is_finite_and_never_negative(seed, scale, space):
    rng = np.random.default_rng(seed)

    def scaled():
        drawn = random_episodes(rng, space)
        if space is PICTURES:
            return drawn
        return [episode((e.observations * scale).astype(np.float32)) for e in drawn]

    rnd = model(space, seed=seed)
    for _ in range(2):
        metrics = learn(rnd, scaled())
        assert all(math.isfinite(v) and v >= 0 for v in metrics.values())
    paid = np.concatenate(rnd.reward(scaled()))
    assert np.isfinite(paid).all() and (paid >= 0).all() and paid.any()


WIDE = {"share": 1.0, "dim": 32, "lr": 0.003}  # wide enough to learn a handful of frames


def mean_paid(rnd, episodes):
    return np.concatenate(rnd.reward(episodes)).mean()


def used_to(rnd, episodes):
    for _ in range(60):
        learn(rnd, episodes)
    return worker(rnd)


def test_what_comes_again_and_again_is_paid_less_and_less():
    rnd, known = model(**WIDE), random_episodes(np.random.default_rng(0))
    learn(rnd, known)
    paid = [mean_paid(rnd, known)]
    for _ in range(3):
        paid.append(mean_paid(used_to(rnd, known), known))
    assert paid == sorted(paid, reverse=True)
    assert paid[-1] < 0.01 * paid[0]


@pytest.mark.parametrize("space", [VECTORS, PICTURES], ids=["vectors", "pictures"])
def test_what_is_new_is_paid_more_than_what_is_known(space):
    rng = np.random.default_rng(0)
    known, new = random_episodes(rng, space), random_episodes(rng, space)
    paying = used_to(model(space, **WIDE), known)
    assert mean_paid(paying, new) > 10 * mean_paid(paying, known)


def test_what_never_changed_is_noticed_when_it_does():
    known = random_episodes(np.random.default_rng(0), PICTURES)
    paying = used_to(model(PICTURES, **WIDE), known)
    changed = [e.observations.copy() for e in known]
    for observations in changed:
        observations[:, 0, 0, 0] = 8  # was 7 in every frame so far
    changed = [episode(observations) for observations in changed]
    assert mean_paid(paying, changed) > 2 * mean_paid(paying, known)


def test_a_smaller_share_learns_more_slowly():
    known = random_episodes(np.random.default_rng(0))
    left = {}
    for share in (0.1, 1.0):
        rnd = model(share=share)
        for _ in range(10):
            loss = learn(rnd, known)["loss"]
        left[share] = loss
    assert left[0.1] > 2 * left[1.0]


def test_coeff_scales_what_is_paid():
    episodes = random_episodes(np.random.default_rng(5))
    one, three, none = (trained(model(coeff=c)).reward(episodes) for c in (1.0, 3.0, 0.0))
    np.testing.assert_allclose(np.concatenate(three), 3 * np.concatenate(one), rtol=1e-6)
    assert not np.concatenate(none).any()


# --- what others ask of it ---------------------------------------------------------------------


def test_it_is_registered_and_learns_from_every_episode():
    assert find_model("rnd") is RND and RND.name == "rnd"
    rnd = model()
    summaries = [e.summary for e in random_episodes(np.random.default_rng(0))]
    assert [i for i, _ in rnd.choose(summaries, np.random.default_rng(0))] == [0, 1, 2, 3]
    assert rnd.hints() == []


def test_presets():
    assert options_of("rnd", {}, "paper") == RNDOptions()
    assert options_of("rnd", {"lr": 0.5}, "few_successes").dim < RNDOptions().dim
    assert options_of("rnd", {"lr": 0.5}, "few_successes").lr == 0.5


def test_check_names_the_encoder_and_builds_nothing():
    with pytest.raises(OptionError, match="encoder: 'strided' needs pictures of at least 20×20"):
        model(PICTURES, encoder="strided").check()
    with pytest.raises(OptionError, match="encoder"):
        model(VECTORS, encoder="conv").check()
    vast = model(PICTURES, dim=10**6)  # 8 TB of weights
    vast.check()
    assert vast.num_parameters > 10**12


def test_num_parameters():
    rnd = model(PICTURES)
    assert rnd.num_parameters == sum(p.numel() for p in rnd.networks.parameters())


def test_progress_and_description():
    rnd = model(share=1.0)
    assert RND.describe(rnd.get_state()).lines == ("no frame seen yet",)
    known = random_episodes(np.random.default_rng(0))
    first = learn(rnd, known)
    for _ in range(60):
        last = learn(rnd, known)
    assert last["loss"] < first["loss"] and last["bonus"] < first["bonus"]
    assert RND.cells(last) == {"loss": f"{last['loss']:.4g}", "bonus": f"{last['bonus']:.4g}"}
    seen, pays = RND.describe(rnd.get_state()).lines
    assert f"{61 * sum(len(e) for e in known):,} frames seen" in seen
    assert pays == f"a step of the last batch is paid {last['bonus']:.3g} on average"


def test_sizes_are_what_weights_depend_on():
    wide = model(dim=7)
    with pytest.raises(RuntimeError, match="size mismatch"):
        wide.set_state(model().get_state())
    assert RND.sizes(wide.options) != RND.sizes(model().options)
    assert RND.sizes(model(lr=0.5).options) == RND.sizes(model().options)
