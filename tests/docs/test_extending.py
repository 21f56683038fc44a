"""What docs/extending.md shows works, and what it lists is all there is.

tests/algorithm/test_own_reward_model.py trains with the page's model.
"""

import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from gymnasium import spaces

from rllib_conspec.auxiliary.base import AuxiliaryLoss
from rllib_conspec.episodes import Episode
from rllib_conspec.networks.cores.base import Core
from rllib_conspec.reward_models.base import RewardModel, Setting
from rllib_conspec.reward_models.together import Together

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
BLOCKS = re.findall(r"```(python|yaml)\n(.*?)```", PAGE, re.DOTALL)
MODEL = re.search(r"<!-- visits.py -->\n```python\n(.*?)```", PAGE, re.DOTALL)[1]
SETTING = Setting(spaces.Box(0, 9, (1,), np.int64), spaces.Discrete(2))


@pytest.fixture
def visits(tmp_path, monkeypatch):
    (tmp_path / "visits.py").write_text(MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    return lambda **options: Together({"visits:Visits": options}, SETTING)


def test_the_models_length_is_what_is_promised():
    """Forty lines that say something."""
    assert len([line for line in MODEL.splitlines() if line.strip()]) <= 40


def test_the_model_pays_and_continues(visits):
    observations = np.array([0, 1, 1, 1, 1, 2])[:, None]
    episode = Episode(observations, np.zeros(5, int), np.zeros(5))
    learner, worker = visits(coeff=0.5), visits(coeff=0.5)
    np.testing.assert_allclose(worker.reward([episode])[0], 0.5)  # all is new
    assert learner.update([({"visits:Visits": None}, episode)]) == {"visits": {"states": 2}}
    worker.load(pickle.loads(pickle.dumps(learner.snapshot())))
    np.testing.assert_allclose(worker.reward([episode])[0], [0.25, 0.25, 0.25, 0.25, 0.5])
    restored = visits(coeff=0.5)
    restored.set_state(pickle.loads(pickle.dumps(learner.get_state())))
    restored.update([({"visits:Visits": None}, episode)])
    restored.load(restored.snapshot())
    np.testing.assert_allclose(restored.reward([episode])[0][-1], 0.5 / np.sqrt(2))
    model = learner.models["visits:Visits"]
    assert model.cells({"states": 2}) == {"states": "2"}
    assert model.describe(model.get_state()).lines == ("2 different observations",)


def test_several_together_as_the_page_writes_them(visits):
    written = [yaml.safe_load(text) for kind, text in BLOCKS if kind == "yaml"]
    assert [list(w) for w in written] == [["visits"], ["config"]]
    together = Together(written[1]["config"]["reward_models"], SETTING)
    assert [m.name for m in together.models.values()] == ["conspec", "rnd", "visits"]


def test_another_algorithm_as_the_page_writes_it():
    code = [text for kind, text in BLOCKS if kind == "python" and text != MODEL]
    assert len(code) == 1
    names = {}
    exec(code[0], names)
    config = names["config"]
    config.validate()
    assert list(config.reward_models) == ["conspec"]
    assert (config.success, config.episodes_per_update) == ("top_k", 32)


@pytest.mark.parametrize("seam", [RewardModel, AuxiliaryLoss, Core])
def test_all_of_a_seam_is_on_the_page(seam):
    own = [n for n, _ in inspect.getmembers(seam) if not n.startswith("_") and n in vars(seam)]
    missing = [n for n in own if not re.search(rf"`[^`\n]*\b{n}\b[^`\n]*`", PAGE)]
    assert not missing


def test_links_lead_to_files():
    for link in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (Path(__file__).parents[2] / "docs" / link).exists(), link
