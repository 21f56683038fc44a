from rllib_conspec.errors import OptionError, UserError, did_you_mean


def test_an_option_error_names_the_option_and_can_be_placed_in_a_section():
    error = OptionError("keys", "must be 1 to 4.")
    assert str(error) == "keys: must be 1 to 4."
    assert (
        str(error.within("env_config").within("config"))
        == "config.env_config.keys: must be 1 to 4."
    )
    assert isinstance(error, ValueError) and isinstance(error, UserError)


def test_did_you_mean_ignores_case_and_stays_silent_when_nothing_is_close():
    assert did_you_mean("num_prototypez", ["lr", "num_prototypes"]) == (
        ' Did you mean "num_prototypes"?'
    )
    assert did_you_mean("conspec", ["ConSpec"]) == ' Did you mean "ConSpec"?'
    assert did_you_mean("zzz", ["lr", "gamma"]) == ""
