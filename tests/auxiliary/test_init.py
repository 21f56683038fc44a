"""Losses by name and by import path, with checked options."""

import pytest
import torch
from painted import Policy, pictures

from rllib_conspec.auxiliary import REGISTRY, find_loss, options_of, shown_by
from rllib_conspec.auxiliary.base import AuxiliaryLoss
from rllib_conspec.auxiliary.drac import DrAC, DrACOptions
from rllib_conspec.errors import OptionError


def test_every_registered_loss_can_be_found_and_has_defaults():
    for name in REGISTRY.entries:
        found = find_loss(name)
        assert issubclass(found, AuxiliaryLoss)
        assert isinstance(options_of(name, {}), found.Options)


def test_a_loss_is_found_by_name_or_by_import_path():
    assert find_loss("drac") is find_loss("rllib_conspec.auxiliary.drac:DrAC") is DrAC
    assert options_of("drac", {"coeff": 0.5}) == DrACOptions(coeff=0.5)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("drack", 'Did you mean "drac"?'),
        ("nothing_like_it", "there are drac"),
        ("no_such_module:Loss", "cannot import"),
        ("rllib_conspec.auxiliary.drac:NoSuchClass", "cannot import"),
        ("rllib_conspec.auxiliary.drac:DrACOptions", "derive it from AuxiliaryLoss"),
        ("rllib_conspec.auxiliary.drac:shift_colours", "derive it from AuxiliaryLoss"),
    ],
)
def test_what_is_no_loss_is_refused_by_name(name, says):
    with pytest.raises(OptionError) as error:
        find_loss(name)
    assert error.value.option == name
    assert says in error.value.message


@pytest.mark.parametrize(
    ("values", "path", "says"),
    [
        ({"coef": 1.0}, "drac.coef", 'Did you mean "coeff"?'),
        ({"coeff": 0.0}, "drac.coeff", "more than 0"),
        (0.2, "drac", "must be a mapping of options, not 0.2"),
    ],
)
def test_wrong_options_are_refused_with_their_path(values, path, says):
    with pytest.raises(OptionError) as error:
        options_of("drac", values)
    assert error.value.option == path
    assert says in error.value.message


def test_losses_that_show_a_policy_something_else_are_asked_and_others_are_not():
    policy, seen = Policy(), pictures(4, 5, 5, 3)
    assert shown_by(["drac", "curl", "rad"], policy.encoder) is None
    shown = shown_by(["drac", "distil"], policy.encoder)
    found = shown(seen, torch.Generator().manual_seed(1))
    expected = find_loss("distil").shown(seen, policy.encoder, torch.Generator().manual_seed(1))
    assert torch.equal(found, expected) and not torch.equal(found, seen)
