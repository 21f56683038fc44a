"""A learner on a device that is not there (`pretend`): every tensor of its updates lies on it, what
is sent to it is counted, and it is not waited for more often than it must.
"""

from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
import torch
from pretend import DEVICE, NAME, MisplacedError, device_here
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.torch import torch_learner
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES
from ray.rllib.utils.metrics import ALL_MODULES
from runners import NOTHING_NEW, runner_of
from tiny import MODEL, keys_config, plain_config

from rllib_conspec.algorithm.whole_episodes import WholeEpisodes


class OnDevice:
    """A learner on the device, a worker that is not, and what the driver does between them."""

    def __init__(self, config, device):
        self.device = device
        self.runner = runner_of(config)
        self.config = self.runner.config
        self.spaces = self.runner.get_spaces()[INPUT_ENV_SINGLE_SPACES]
        self.learner = self.config.build_learner(spaces={DEFAULT_MODULE_ID: self.spaces})
        self.driver = self.config.get_reward_model(*self.spaces)
        self.position = 0

    @property
    def conspec(self):
        return self.learner.reward_model.models["conspec"].learner

    def iterate(self):
        """Play, and learn from it: (result of the RL update, answer of the reward models)."""
        ((shares, _, report),) = self.runner.sample_shares(self.position, NOTHING_NEW)
        self.position += sum(s.length for s in report.summaries)
        data = WholeEpisodes.of([shares], [report])
        data.solve_refs()
        size = data.minibatch_size(self.config.episodes_per_minibatch)
        learned = self.learner.update(
            training_data=data, timesteps={}, num_epochs=self.config.num_epochs, minibatch_size=size
        )
        if self.driver is None:
            return learned, None
        chosen = self.driver.choose(report.summaries, np.random.default_rng(0))
        pointed = [(labels, report.episodes[i]) for i, labels in chosen]
        return learned, self.learner.update_reward_model(pointed)

    @contextmanager
    def watched(self, what):
        """[(waits, bytes sent)] of the calls of this method of the learner."""
        seen, original, device = [], getattr(self.learner, what), self.device

        def watch(*args, **kwargs):
            waits, sent = len(device.waits), device.moved
            answer = original(*args, **kwargs)
            seen.append((device.waits[waits:], device.moved - sent))
            return answer

        with patch.object(self.learner, what, watch):
            yield seen


@pytest.fixture
def on_device():
    """Builds learners on the device, which is there until the test ends."""
    with device_here() as device, patch.object(torch_learner, "get_device", lambda *_: DEVICE):

        def build(config, core_dim=0, num_epochs=1):
            # Every operation goes through Python here: a recurrent core has thousands.
            config.rl_module(model_config=MODEL | {"core_dim": core_dim})
            made = OnDevice(config.training(num_epochs=num_epochs), device)
            made.iterate()  # what is made once is made
            return made

        yield build


def tensors_of(thing, path=""):
    """(path, tensor) of all tensors in dicts and lists."""
    if isinstance(thing, torch.Tensor):
        yield path, thing
    elif isinstance(thing, dict | list | tuple):
        items = thing.items() if isinstance(thing, dict) else enumerate(thing)
        for key, value in items:
            yield from tensors_of(value, f"{path}/{key}")


# --- the device itself ----------------------------------------------------------------------------


def test_what_a_gpu_would_refuse_is_refused():
    with device_here():
        here, there = torch.ones(3, device=DEVICE), torch.ones(3)
        with pytest.raises(MisplacedError, match="add"):
            here + there
        with pytest.raises(MisplacedError, match="index_copy"):
            here.index_copy(0, torch.tensor([1]), here[:1])
        with pytest.raises(RuntimeError, match="numpy"):
            here.numpy()
        torch.testing.assert_close((here + torch.tensor(2.0)).cpu(), there + 2)
        torch.testing.assert_close(here[torch.tensor([0, 2])].cpu(), there[:2])


@pytest.mark.parametrize(
    ("what", "times"),
    [
        (lambda x: float(x.sum()), 1),
        (lambda x: x.tolist(), 1),
        (lambda x: x.cpu(), 1),
        (lambda x: x[x > 0], 1),
        (lambda x: (x > 0).nonzero(), 1),
        (lambda x: torch.unique(x), 1),
        (lambda x: bool((x > 0).any()), 1),
        (lambda x: x.masked_fill(x > 0, 2.0).sum(), 0),
        (lambda x: x.__setitem__(x > 0, 2.0), 0),
        (lambda x: torch.nn.functional.relu(x).mean(), 0),
    ],
)
def test_what_makes_the_program_wait_is_noted(what, times):
    with device_here() as device:
        what(torch.from_numpy(np.ones(3, np.float32)).to(DEVICE))
    assert len(device.waits) == times
    assert device.moved == 12


def test_gradients_are_on_the_device():
    with device_here() as device:
        layer = torch.nn.Linear(3, 2).to(DEVICE)
        expected = torch.full((2, 3), 4.0)
        layer(torch.ones(4, 3, device=DEVICE)).sum().backward()
        assert layer.weight.grad.device == layer.weight.device
        assert device.waits == []
        torch.testing.assert_close(layer.weight.grad.cpu(), expected)


# --- the learner ----------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [plain_config, keys_config])
def test_every_tensor_of_an_update_is_on_the_learners_device(on_device, config):
    """Operations on tensors of two places would have raised; here are those that never met."""
    made = on_device(config(), core_dim=8)
    policy = made.learner.module[DEFAULT_MODULE_ID]
    optimizers = dict(made.learner.get_optimizers_for_module(DEFAULT_MODULE_ID))
    held = [*policy.parameters(), *(p.grad for p in policy.parameters())]
    if made.driver is not None:
        held += list(made.conspec.model.parameters())
        held += [p.grad for p in made.conspec.model.parameters()]
        optimizers["conspec"] = made.conspec.optimizer
    for optimizer in optimizers.values():
        state = dict(tensors_of(optimizer.state_dict()["state"]))
        assert state
        held += [t for path, t in state.items() if not path.endswith("/step")]  # may be anywhere
    assert {t.device.index for t in held} == {DEVICE.index}
    assert {t.device.type for t in held} == {NAME}


def test_a_tensor_that_was_left_behind_is_found(on_device):
    made = on_device(keys_config())
    made.conspec.model.vectors = torch.nn.Parameter(made.conspec.model.vectors.detach().cpu())
    with pytest.raises(MisplacedError):
        made.iterate()


def test_bytes_that_are_sent_to_the_device_are_metrics(on_device):
    made = on_device(keys_config())
    with made.watched("update") as learned, made.watched("update_reward_model") as remembered:
        results, answer = made.iterate()
    ((_, sent),) = remembered
    assert 0.8 * sent <= answer.sent <= sent  # masks and indices are not counted
    ((_, sent),) = learned
    shown = results[ALL_MODULES]["bytes_to_device"].peek()
    assert 0.9 * sent <= shown <= sent


def test_a_checkpoint_can_be_read_without_the_device(on_device):
    state = on_device(keys_config()).learner.get_state()
    assert {path: t.device for path, t in tensors_of(state) if t.device.type != "cpu"} == {}


# --- waiting --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("memory", "steps", "most"), [("newest", 1, 11), ("ages", 4, 12)])
def test_how_often_an_update_of_the_reward_model_waits(on_device, memory, steps, most):
    """Eight of these are the snapshot's arrays; a step waits once to know what to encode."""
    made = on_device(keys_config(memory=memory, steps_per_iteration=steps))
    for _ in range(3):
        with made.watched("update_reward_model") as seen:
            made.iterate()
    ((waits, _),) = seen
    assert made.conspec.iterations > 0
    assert len(waits) <= most, waits


def test_an_update_of_the_policy_waits_only_where_rllib_does(on_device):
    """It does for every minibatch: masks in PPO's loss, and whether gradients are finite."""
    made = on_device(plain_config(), core_dim=8, num_epochs=2)
    with made.watched("update") as seen:
        made.iterate()
    ((waits, _),) = seen
    assert len([w for w in waits if "/rllib_conspec/" in w]) == 1, waits
    assert len(waits) <= 143, waits
