"""Answers without their references."""

import pickle

import numpy as np
import ray

from rllib_conspec.algorithm.packed import packed, unpacked


def test_what_is_unpacked_is_what_was_packed(ray_local):
    first, second = ray.put(1), ray.put(2)
    thing = {"a": [first, 3], "b": (second, first), "c": np.arange(4)}
    data, references = packed(thing)
    assert references == [first, second], "each once"
    found = unpacked(data, references)
    np.testing.assert_array_equal(found.pop("c"), thing.pop("c"))
    assert found == thing


def test_others_may_stand_in_for_the_references(ray_local):
    data, references = packed([ray.put(1), [ray.put(2)]])
    assert unpacked(data, ["x", "y"]) == ["x", ["y"]]
    assert len(references) == 2


def test_what_only_cloudpickle_knows_is_packed_too():
    data, references = packed(lambda x: x + 1)
    assert references == []
    assert unpacked(data, [])(1) == 2
    assert pickle.loads(data)(1) == 2, "nothing special where there is no reference"
