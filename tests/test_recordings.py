import json

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from rllib_conspec.episodes import Episode
from rllib_conspec.errors import UserError
from rllib_conspec.recordings import Origin, Recording, load, save

PICTURES = spaces.Box(0, 255, (5, 4, 3), np.uint8)
ORIGIN = Origin.of("Pong", "ale-py 1.0", PICTURES, spaces.Discrete(6))


def episode(length, seed=0, shape=(5, 4, 3), dtype=np.uint8, actions=()):
    rng = np.random.default_rng(seed)
    return Episode(
        rng.integers(0, 255, (length + 1, *shape)).astype(dtype),
        rng.integers(0, 6, (length, *actions)),
        rng.normal(size=length).astype(np.float32),
        terminated=bool(seed % 2),
        success=bool(seed % 3),
        events=((0, "key 1"),),
        seed=seed,
    )


def write(path, episodes):
    save(path, Recording(ORIGIN, "random", 1234, tuple(e.packed() for e in episodes)))


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.sampled_from([((5, 4, 3), np.uint8, ()), ((4,), np.float32, (2,))]),
)
def test_what_is_read_is_what_was_written(tmp_path_factory, lengths, kind):
    path = tmp_path_factory.mktemp("recordings") / "file"
    shape, dtype, actions = kind
    written = [episode(n, i, shape, dtype, actions) for i, n in enumerate(lengths)]
    write(path, written)
    found = load(path)
    assert (found.origin, found.player, found.frames) == (ORIGIN, "random", 1234)
    for a, packed in zip(written, found.episodes, strict=True):
        b = packed.unpacked()
        for name in ("observations", "actions", "rewards", "digests"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
            assert getattr(a, name).dtype == getattr(b, name).dtype
        assert (a.terminated, a.success, a.events, a.seed) == (
            b.terminated,
            b.success,
            b.events,
            b.seed,
        )
    assert len(load(path, 1).episodes) == 1 and len(load(path, 99).episodes) == len(lengths)


def test_the_first_line_says_what_it_is(tmp_path):
    write(tmp_path / "file", [episode(3)])
    head = json.loads((tmp_path / "file").read_bytes().split(b"\n")[0])
    assert head["plays"] == "Pong" and head["version"] == "ale-py 1.0"
    assert head["observations"] == "5×4×3 uint8" and head["actions"] == "Discrete(6)"


def test_it_is_compact(tmp_path):
    still = Episode(np.zeros((601, 84, 84, 3), np.uint8), np.zeros(600, int), np.zeros(600))
    write(tmp_path / "file", [still])
    assert (tmp_path / "file").stat().st_size < still.observations.nbytes / 100


@given(st.floats(0.01, 0.999))
def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path_factory, share):
    path = tmp_path_factory.mktemp("recordings") / "file"
    write(path, [episode(4, i) for i in range(3)])
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    for count in (None, 1):
        with pytest.raises(UserError, match=r"is cut off: \d of its 3 episodes|is not a recording"):
            load(path, count)


def test_damage_within_is_noticed(tmp_path):
    write(tmp_path / "file", [episode(40)])
    whole = bytearray((tmp_path / "file").read_bytes())
    whole[-60:-20] = bytes(40)
    (tmp_path / "file").write_bytes(whole)
    with pytest.raises(UserError, match="is cut off: 0 of its 1 episodes are whole"):
        load(tmp_path / "file")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(UserError, match="there is no file"):
        load(tmp_path / "nothing")
    for content in (b"", b"{}\n", b"\x00\xff" * 99, b"[1]\n"):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(UserError, match="is not a recording"):
            load(tmp_path / "other")


def test_nothing_is_written_by_halves(tmp_path):
    write(tmp_path / "file", [episode(3)])
    before = (tmp_path / "file").read_bytes()
    with pytest.raises(AttributeError):
        save(tmp_path / "file", Recording(ORIGIN, "random", 1, (None,)))
    assert (tmp_path / "file").read_bytes() == before


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Origin.of("Bowling", "ale-py 1.0", PICTURES, spaces.Discrete(6)), "is of Pong, not of"),
        (Origin.of("Pong", "ale-py 2.0", PICTURES, spaces.Discrete(6)), "was played by ale-py 1.0"),
        (Origin.of("Pong", "ale-py 1.0", PICTURES, spaces.Discrete(18)), "has actions Discrete(6)"),
        (
            Origin.of("Pong", "ale-py 1.0", spaces.Box(0, 1, (5, 4, 3)), spaces.Discrete(6)),
            "has observations 5×4×3 uint8, not 5×4×3 float32",
        ),
        (Origin.of("", "", PICTURES, spaces.Discrete(6)), ""),
        (ORIGIN, ""),
    ],
)
def test_origins_are_compared(other, said):
    assert ORIGIN.difference(other).startswith(said) and bool(ORIGIN.difference(other)) == bool(
        said
    )
