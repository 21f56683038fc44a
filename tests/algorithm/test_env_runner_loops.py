"""A rollout worker with callbacks and connectors of a user: RLlib's loop plays instead of ours."""

import numpy as np
import pytest
import torch
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from runners import Counting, paying, reported, runner_of
from tiny import keys_config


class Watching(ConnectorV2):
    """A user's connector that changes nothing."""

    calls = 0

    def __call__(self, *, batch, **kwargs):
        Watching.calls += 1
        return batch


def assert_pays(runner):
    """Intrinsic rewards are added by whatever loop plays."""
    episodes = paying(runner).sample()
    assert len(episodes) == 8
    report = runner.take_report()
    gained = [
        e.get_return() - s.extrinsic_return for e, s in zip(episodes, report.summaries, strict=True)
    ]
    np.testing.assert_allclose(gained, report.intrinsic_returns, atol=1e-4)
    assert np.abs(gained).sum() > 0


def test_callbacks_are_called_and_rewards_still_paid():
    config = keys_config(threshold=0.0).callbacks(callbacks_class=Counting)
    Counting.steps = Counting.ended = 0
    assert_pays(runner_of(config))
    assert Counting.ended >= 8
    assert Counting.steps > 8 * 50


def test_callback_functions_are_called_too():
    """RLlib also takes functions instead of a class."""
    ended, made = [], []
    config = keys_config(threshold=0.0)
    config.callbacks(
        on_episode_end=lambda **kwargs: ended.append(1),
        on_environment_created=lambda *, env, **kwargs: made.append(env.num_envs),
    )
    assert_pays(runner_of(config))
    assert len(ended) >= 8
    assert made == [4]


@pytest.mark.parametrize("where", ["env_to_module_connector", "module_to_env_connector"])
def test_connectors_are_called_and_rewards_still_paid(where):
    config = keys_config(threshold=0.0)
    config.env_runners(**{where: lambda *args, **kwargs: Watching()})
    Watching.calls = 0
    assert_pays(runner_of(config))
    assert Watching.calls > 50


def test_both_loops_store_the_same_things():
    """RLlib's loop and ours return episodes that a learner cannot tell apart."""
    quick = runner_of(keys_config())
    slow = runner_of(keys_config().callbacks(callbacks_class=Counting))
    slow.module.load_state_dict(quick.module.state_dict())
    a, b = quick.sample()[0], slow.sample()[0]
    assert a.extra_model_outputs.keys() >= {Columns.ACTION_DIST_INPUTS, Columns.ACTION_LOGP}
    for name in (Columns.ACTION_DIST_INPUTS, Columns.ACTION_LOGP):
        x, y = a.get_extra_model_outputs(name), b.get_extra_model_outputs(name)
        assert x.shape[1:] == np.asarray(y).shape[1:]
        assert x.dtype == np.asarray(y).dtype
    for episode in (a, b):
        assert episode.get_observations().dtype == np.uint8
        assert len(episode.get_observations()) == len(episode) + 1 == len(episode.get_infos())
        assert episode.is_numpy
        logits = torch.from_numpy(
            np.asarray(episode.get_extra_model_outputs(Columns.ACTION_DIST_INPUTS))
        )
        actions = torch.from_numpy(np.asarray(episode.get_actions()))[:, None]
        np.testing.assert_allclose(
            logits.log_softmax(-1).gather(1, actions)[:, 0],
            episode.get_extra_model_outputs(Columns.ACTION_LOGP),
            atol=1e-5,
        )
    for runner in (quick, slow):
        for episode in reported(runner.take_report()):
            assert episode.outputs == {}, "RLlib's own are not a core's"
            assert episode.observations.shape == (len(episode) + 1, 5, 5, 3)
