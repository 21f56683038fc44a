"""A learner on a device that is not there (`pretend`): every tensor of its updates lies on it, what
is sent to it is counted, and it is not waited for more often than it must.
"""

from unittest.mock import patch

import numpy as np
import pytest
import torch
from inside import learner_of, make_prototypes_pay
from pretend import DEVICE, MisplacedError, device_here
from ray.rllib.core.learner.torch import torch_learner
from tiny import keys_config, plain_config


@pytest.fixture
def on_device(built):
    """Builds algorithms whose learner is on the device, which is there until the test ends."""
    with device_here() as device, patch.object(torch_learner, "get_device", lambda *_: DEVICE):

        def build(config):
            algo = built(config)
            algo.train()  # what is made once is made
            return algo, device

        yield build


def watched(algo, device, what):
    """Of one call of a method of the learner in an iteration: (waits, bytes sent), and the result
    of the iteration.
    """
    learner, seen = learner_of(algo), []
    original = getattr(learner, what)

    def watch(*args, **kwargs):
        waits, sent = len(device.waits), device.moved
        answer = original(*args, **kwargs)
        seen.append((device.waits[waits:], device.moved - sent))
        return answer

    with patch.object(learner, what, watch):
        result = algo.train()
    assert len(seen) == 1
    return *seen[0], result


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
    """Operations on tensors of two places would have raised; here are those that were not met."""
    algo, _ = on_device(config())
    learner = learner_of(algo)
    policy = learner.module["default_policy"]
    optimizers = dict(learner.get_optimizers_for_module("default_policy"))
    held = [p for p in policy.parameters()] + [p.grad for p in policy.parameters()]
    if learner.reward_model is not None:
        own = learner.reward_model.models["conspec"].learner
        held += list(own.model.parameters())
        held += [p.grad for p in own.model.parameters() if p.grad is not None]
        optimizers["conspec"] = own.optimizer
    for optimizer in optimizers.values():
        state = dict(tensors_of(optimizer.state_dict()["state"]))
        assert state
        held += [t for path, t in state.items() if not path.endswith("/step")]  # may be anywhere
    assert {t.device for t in held} == {DEVICE}


def test_a_tensor_that_was_left_behind_is_found(on_device):
    algo, _ = on_device(keys_config())
    model = learner_of(algo).reward_model.models["conspec"].learner.model
    model.vectors = torch.nn.Parameter(model.vectors.detach().cpu())
    with pytest.raises(MisplacedError):
        algo.train()


def test_bytes_that_are_sent_to_the_device_are_metrics(on_device):
    algo, device = on_device(keys_config())
    _, sent, result = watched(algo, device, "update_reward_model")
    assert 0.9 * sent <= result["bytes_to_device"]["reward_model"] <= sent
    _, sent, result = watched(algo, device, "update")
    shown = result["learners"]["__all_modules__"]["bytes_to_device"]
    assert 0.9 * sent <= shown <= sent


def test_a_checkpoint_can_be_read_without_the_device(on_device):
    algo, _ = on_device(keys_config())
    state = algo.get_state()["learner_group"]["learner"]
    places = {path: t.device.type for path, t in tensors_of(state) if t.device.type != "cpu"}
    assert places == {}


# --- waiting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["newest", "ages"])
def test_how_often_an_update_of_the_reward_model_waits(on_device, memory):
    algo, device = on_device(keys_config(memory=memory, steps_per_iteration=2))
    make_prototypes_pay(algo)
    waits, _, _ = watched(algo, device, "update_reward_model")
    assert len(waits) <= 20, waits


def test_how_often_an_update_of_the_policy_waits(on_device):
    """Not once for a minibatch: twice as many minibatches wait as often."""
    counts = []
    for epochs in (2, 4):
        algo, device = on_device(plain_config().training(num_epochs=epochs))
        waits, _, _ = watched(algo, device, "update")
        counts.append(len(waits))
    assert counts[0] == counts[1], waits
    assert counts[0] <= 40, waits
