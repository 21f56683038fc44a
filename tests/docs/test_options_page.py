"""The page of options says what the code says, and nothing that can be set is left out."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from ray.rllib.algorithms.dqn import DQN
from ray.rllib.algorithms.ppo import PPOConfig

from rllib_conspec import auxiliary, reward_models
from rllib_conspec.algorithm import ConSpecConfig, with_reward_model
from rllib_conspec.cli.checks.config_keys import FOUND
from rllib_conspec.networks import MODEL_CONFIG_KEYS

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "\n".join(page.read_text() for page in DOCS.rglob("*.md"))


@pytest.fixture(scope="module")
def make_options(script):
    return script("make_options")


def test_page_is_current(make_options):
    page = (DOCS / "options.md").read_text()
    assert page == make_options.page(page), "run python docs/make_options.py"


def test_page_without_a_place_for_a_table_is_refused(make_options):
    page = (DOCS / "options.md").read_text().replace("<!-- reward_models.rnd -->", "")
    with pytest.raises(SystemExit, match=r"no place for <!-- reward_models.rnd -->"):
        make_options.page(page)


def options():
    for registry in (reward_models.REGISTRY, auxiliary.REGISTRY):
        for name in registry.entries:
            yield from ((name, f.name) for f in fields(registry.find(name).Options))


def section(name):
    """The text of a page under the heading `name`."""
    return re.search(rf"^### `{name}`\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)[1]


@pytest.mark.parametrize(("name", "option"), list(options()))
def test_every_option_stands_in_the_section_of_its_owner(name, option):
    assert f"| `{option}` |" in section(name)


def settings():
    """Fields of our configurations that RLlib's have not, of any algorithm with reward models."""
    on_dqn = with_reward_model(DQN, "rnd").get_default_config()
    for ours, rllibs in ((ConSpecConfig(), PPOConfig()), (on_dqn, DQN.get_default_config())):
        yield from (key for key in vars(ours) if key not in vars(rllibs) and key[0] != "_")


@pytest.mark.parametrize("setting", sorted({*settings()} - {*FOUND}))
def test_every_setting_is_documented(setting):
    assert f"| `{setting}`" in TEXT


def test_settings_are_found():
    assert {"success", "learn_without_reward", "episodes_per_update"} <= set(settings())


@pytest.mark.parametrize("key", MODEL_CONFIG_KEYS)
def test_every_key_of_the_network_is_documented(key):
    assert re.search(rf"^\| `{key}` \|", TEXT, re.MULTILINE)


@pytest.mark.parametrize("name", reward_models.REGISTRY.entries)
def test_metrics_that_progress_shows_are_documented(name):
    model = reward_models.find_model(name)
    for metric in model.metrics_shown:
        assert f"`{model.name}/{metric}`" in TEXT
