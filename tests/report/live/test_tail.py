"""However a file of rows gets written, every whole row arrives once and in order."""

import json
import os
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.report.live import tail as tail_module
from rllib_conspec.report.live.tail import Tail

ROWS = st.lists(
    st.dictionaries(st.sampled_from(["a", "é", "\n"]), st.integers() | st.text(max_size=5)),
    max_size=8,
)


def written(rows) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


class Reader:
    """What somebody who looks again and again believes the rows to be."""

    def __init__(self, path):
        self.tail = Tail(path)
        self.rows = []

    def look(self):
        news = self.tail.read()
        self.rows = news.rows if news.anew else self.rows + news.rows
        return news


def put(path, content: bytes, clock=[0]):  # noqa: B006  (counts over all calls)
    """Write a file that is later than the one before, however coarse the clock."""
    path.write_bytes(content)
    clock[0] += 1
    os.utime(path, ns=(clock[0], clock[0]))


@settings(max_examples=40)
@given(rows=ROWS, cuts=st.lists(st.floats(0, 1), max_size=6))
def test_any_split_into_writes_gives_the_same_rows(tmp_path_factory, rows, cuts):
    path = tmp_path_factory.getbasetemp() / "split.json"
    content, reader = written(rows), Reader(path)
    for cut in sorted(int(c * len(content)) for c in cuts):
        put(path, content[:cut])
        reader.look()
        assert reader.rows == rows[: content[:cut].count(b"\n")]
    put(path, content)
    reader.look()
    assert reader.rows == rows


@settings(max_examples=40)
@given(first=ROWS, second=ROWS, cut=st.floats(0, 1))
def test_a_file_that_is_written_anew_while_it_is_read(tmp_path_factory, first, second, cut):
    path = tmp_path_factory.getbasetemp() / "anew.json"
    put(path, written(first))
    reader = Reader(path)
    reader.look()
    content = written(second)
    for part in (content[: int(cut * len(content))], content):
        put(path, part)
        reader.look()
    reader.look()  # shorter twice in a row: it stays so
    same = [json.dumps(a) == json.dumps(b) for a, b in zip(first, second, strict=False)]
    if all(same):  # only the end of one file is missing in the other: nothing tells them apart
        assert reader.rows[: len(second)] == second
    assert len(reader.rows) >= len(second)
    if len(content) < len(written(first)) or not all(same[len(first) - 1 :]):
        assert reader.rows == second


def test_a_copy_that_goes_on_loses_and_repeats_nothing(tmp_path):
    path, rows = tmp_path / "result.json", [{"a": i} for i in range(9)]
    put(path, written(rows[:5]))
    reader = Reader(path)
    reader.look()
    for part in (b"", written(rows[:2]), written(rows[:2]) + b'{"a"', written(rows)):
        put(path, part)
        assert not reader.look().anew
    assert reader.rows == rows


def test_rows_that_a_resumed_run_dropped_are_forgotten(tmp_path):
    path = tmp_path / "result.json"
    put(path, written([{"a": 1}, {"a": 2}, {"a": 3}]))
    reader = Reader(path)
    reader.look()
    put(path, written([{"a": 1}]))
    assert not reader.look().anew  # may be half of a copy
    assert reader.look().anew
    assert reader.rows == [{"a": 1}]


def test_damaged_lines_are_counted_and_left_out(tmp_path):
    path = tmp_path / "result.json"
    put(path, b'{"a": 1}\n{"a": \n[1]\n\xff\n\n{"a": 2}\n{"half')
    news = Tail(path).read()
    assert news.rows == [{"a": 1}, {"a": 2}] and news.damaged == 3


def test_a_long_file_is_sampled_from_its_first_row_to_its_last(tmp_path, monkeypatch):
    monkeypatch.setattr(tail_module, "ALL", 1000)
    monkeypatch.setattr(tail_module, "SAMPLES", 50)
    path = tmp_path / "result.json"
    put(path, written({"a": i, "long": "x" * (i % 90)} for i in range(5000)) + b'{"a"')
    tail = Tail(path)
    news = tail.read()
    found = [row["a"] for row in news.rows]
    assert news.sampled and not news.damaged
    assert found[0] == 0 and found[-1] == 4999 and found == sorted(set(found))
    assert 45 <= len(found) <= 52 and max(b - a for a, b in pairwise(found)) < 200
    put(path, path.read_bytes()[:-4] + b'{"a": 5000}\n')
    news = tail.read()
    assert news.rows == [{"a": 5000}] and not news.sampled


def test_what_cannot_be_read_is_told(tmp_path):
    with pytest.raises(FileNotFoundError):
        Tail(tmp_path / "result.json").read()
    with pytest.raises(IsADirectoryError):
        Tail(tmp_path).read()
