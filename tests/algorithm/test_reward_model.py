"""The seam: a reward model that is not ConSpec works without a change to the glue."""

import numpy as np
import pytest
from tiny import keys_config, plain_config

from rllib_conspec import WholeEpisodePPO, WholeEpisodePPOConfig
from rllib_conspec.retrospection.success import sparse_success


class SurpriseLearner:
    """Remembers mean frames; the mean over all of them is the snapshot."""

    num_parameters = 0

    def __init__(self):
        self.means, self.steps = [], 0

    def add(self, episodes):
        self.means += [float(e.frames.mean()) for e in episodes]

    def step(self):
        self.steps += 1
        return {"episodes": len(self.means), "nested": {"steps": self.steps}}

    def snapshot(self):
        return self.steps, float(np.mean(self.means)) if self.means else 0.0

    def get_state(self):
        return {"means": list(self.means), "steps": self.steps}

    def set_state(self, state):
        self.means, self.steps = list(state["means"]), state["steps"]


class SurpriseScorer:
    """Pays each step its distance from the mean."""

    snapshot = (0, 0.0)

    @property
    def version(self):
        return self.snapshot[0]

    def load(self, snapshot):
        self.snapshot = snapshot

    def reward(self, episodes):
        mean = self.snapshot[1]
        return [
            (np.abs(e.frames.mean(axis=(1, 2, 3)) - mean) * (mean > 0)).astype(np.float32)
            for e in episodes
        ]


class Surprise:
    """Learns from the first half of every batch."""

    name = "surprise"

    def success_function(self):
        return sparse_success

    def judge(self, summaries):
        return np.array([s.success for s in summaries])

    def choose(self, summaries, rng):
        return [(i, bool(s.success)) for i, s in enumerate(summaries[: len(summaries) // 2])]

    def learner(self, shape, device, seed):
        assert tuple(shape) == (5, 5, 3)
        return SurpriseLearner()

    def scorer(self, shape):
        assert tuple(shape) == (5, 5, 3)
        return SurpriseScorer()


class SurpriseConfig(WholeEpisodePPOConfig):
    def get_reward_model(self):
        return Surprise()


def test_another_reward_model(ray_local, tmp_path):
    config = keys_config(SurpriseConfig)
    algo = config.build_algo()
    assert isinstance(algo, WholeEpisodePPO)
    first, second = algo.train(), algo.train()
    assert first["surprise"] == {"episodes": 4, "nested": {"steps": 1}}
    assert second["surprise"] == {"episodes": 8, "nested": {"steps": 2}}
    assert first["env_runners"]["intrinsic_return_mean"] == 0
    assert second["env_runners"]["intrinsic_return_mean"] > 1
    assert second["env_runners"]["episode_return_max"] <= 1
    learner = algo.learner_group._learner.reward_model
    assert algo.env_runner.scorer.snapshot == learner.snapshot()

    algo.save_to_path(tmp_path / "checkpoint")
    held = learner.get_state()
    algo.train()
    assert learner.get_state() != held
    algo.restore_from_path(tmp_path / "checkpoint")
    restored = algo.learner_group._learner.reward_model
    assert restored.get_state() == held
    assert algo.env_runner.scorer.snapshot == restored.snapshot()
    algo.stop()


@pytest.mark.parametrize("config", [keys_config, plain_config])
def test_conspec_and_none_are_reward_models_too(config):
    model = config().get_reward_model()
    assert (model is None) == (config is plain_config)
    if model is not None:
        learner, scorer = model.learner((5, 5, 3), "cpu", 0), model.scorer((5, 5, 3))
        scorer.load(learner.snapshot())
        assert scorer.version == 0
        assert model.name == "conspec"
