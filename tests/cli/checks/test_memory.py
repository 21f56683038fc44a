import math

import pytest

from rllib_conspec.cli.checks import memory
from rllib_conspec.cli.checks.memory import check_memory, in_bytes, largest
from rllib_conspec.errors import OptionError


def test_what_needs_more_than_there_is_names_the_largest_network(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 24e9)
    check_memory({"config.model_config": 1e9, "config.some.dim": 0.4e9})
    with pytest.raises(OptionError) as raised:
        check_memory({"config.model_config": 0.5e9, "config.some.dim": 1.1e9})
    assert str(raised.value) == (
        "config.some.dim: the networks need about 26 GB, this machine has 24 GB free."
    )
    with pytest.raises(OptionError, match="need more than can be counted, this machine has 24 GB"):
        check_memory({"config.some.dim": math.inf})


def test_some_memory_is_free_here():
    assert 1e8 < memory.free_bytes() < 1e15


def test_the_option_to_blame_has_the_largest_number():
    assert largest("config.model_config", {"encoder": "mlp", "gru_dim": 0, "dim": 64}) == (
        "config.model_config.dim"
    )
    assert largest("a", {"fcnet_hiddens": [64, 1000], "head": 512, "vf_share": True}) == (
        "a.fcnet_hiddens"
    )
    assert largest("a", {"encoder": "mlp"}) == largest("a", {}) == "a"


@pytest.mark.parametrize(
    ("number", "text"),
    [(12, "12 bytes"), (1.5e9, "1.5 GB"), (37e12, "37 TB"), (2e19, "20000 PB")],
)
def test_bytes_in_words(number, text):
    assert in_bytes(number) == text
