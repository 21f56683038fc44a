"""Cores by name and by import path; without memory where they have no size."""

import pytest

from rllib_conspec.errors import OptionError
from rllib_conspec.networks.cores import REGISTRY, build_core
from rllib_conspec.networks.cores.base import Core
from rllib_conspec.networks.cores.gru import GRUCore


@pytest.mark.parametrize("name", REGISTRY.entries)
def test_every_registered_core_has_the_sizes_asked_for(name):
    core = build_core(name, inputs=6, dim=12)
    assert core.dim == 12
    assert core.initial_state()  # a core that is registered remembers something


def test_a_core_is_found_by_name_or_by_import_path():
    assert type(build_core("gru", 6, 4)) is GRUCore
    assert type(build_core("rllib_conspec.networks.cores.gru:GRUCore", 6, 4)) is GRUCore


def test_a_core_without_size_has_no_memory():
    core = build_core("gru", inputs=6, dim=0)
    assert type(core) is Core
    assert (core.dim, core.initial_state()) == (6, {})


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gruu", 'Did you mean "gru"?'),
        ("lstm", "there are gru, rims, rma"),
        ("rllib_conspec.networks.cores.gru:GRU", "derive it from Core"),
    ],
)
def test_what_is_no_core_is_refused_by_name(name, says):
    with pytest.raises(OptionError) as error:
        build_core(name, 6, 4)
    assert error.value.option == name
    assert says in error.value.message


def test_only_cores_that_read_what_happened_last_get_more_inputs():
    assert build_core("gru", 6, 4, last=3).gru.input_size == 6
    assert build_core("rma", 6, 4, last=3).store[0].in_features == 9


def test_options_of_a_core_are_checked():
    assert build_core("rma", 6, 4, {"slots": 7}).initial_state()["rows"].shape[0] == 7
    with pytest.raises(OptionError, match="slots: must be at least 1") as error:
        build_core("rma", 6, 4, {"slots": 0})
    assert error.value.option == "rma.slots"
    with pytest.raises(OptionError, match="is an option of rma, not of gru"):
        build_core("gru", 6, 4, {"slots": 7})
