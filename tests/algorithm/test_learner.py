"""The learner: minibatches of whole episodes, and a reward model beside the RL module."""

import time

import numpy as np
import pytest
import ray
import torch
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.core.columns import Columns
from tiny import MODEL, clock_config, keys_config, plain_config, reward_learner

from rllib_conspec import WholeEpisodePPOConfig
from rllib_conspec.algorithm.learner import COMPONENT_REWARD_MODEL, _fetch, colour_loss
from rllib_conspec.networks.colours import shift_colours
from rllib_conspec.retrospection.memory import StoredEpisode


def minibatches_of_one_iteration(algo):
    """What each gradient step of one `train()` was computed from: one dict of arrays per step."""
    learner = algo.learner_group._learner
    seen, original = [], learner.compute_losses

    def spy(*, fwd_out, batch):
        own = batch["default_policy"]
        kept = (k for k in (Columns.OBS, Columns.LOSS_MASK) if k in own)
        seen.append({k: own[k].cpu().numpy() for k in kept})
        return original(fwd_out=fwd_out, batch=batch)

    learner.compute_losses = spy
    algo.train()
    return seen


@pytest.mark.parametrize(("batch", "minibatch", "epochs"), [(8, 4, 2), (8, 8, 3), (6, 1, 1)])
def test_gradient_steps_per_iteration(built, batch, minibatch, epochs):
    config = plain_config().episodes(per_batch=batch, per_minibatch=minibatch)
    seen = minibatches_of_one_iteration(built(config.training(num_epochs=epochs)))
    assert len(seen) == epochs * batch // minibatch
    # One row per episode, from its first step to its end.
    assert all(m[Columns.OBS].shape[0] == minibatch for m in seen)


def test_every_episode_is_seen_once_per_epoch(built):
    algo = built(plain_config().training(num_epochs=2))
    seen = minibatches_of_one_iteration(algo)
    per_epoch = len(seen) // 2
    for epoch in (seen[:per_epoch], seen[per_epoch:]):
        rows = [row.tobytes() for m in epoch for row in m[Columns.OBS]]
        assert len(rows) == len(set(rows)) == 8


def test_minibatches_hold_whole_episodes_of_any_length(built):
    """Lengths 1 to 20: `per_minibatch` episodes in a gradient step, each complete and masked."""
    algo = built(clock_config(WholeEpisodePPOConfig).training(num_epochs=3))
    seen = minibatches_of_one_iteration(algo)
    assert len(seen) == 3 * 8 // 2
    for m in seen:
        assert m[Columns.OBS].shape[0] == 2
        for frames, mask in zip(m[Columns.OBS], m[Columns.LOSS_MASK], strict=True):
            length = int(frames[0, 2])
            assert frames[0, 1] == 0, "does not begin with the first step"
            assert mask.sum() == length
            np.testing.assert_array_equal(frames[:length, 1], np.arange(length))


def test_gradient_steps_without_memory(built):
    """Without a GRU single steps are shuffled, but as many gradient steps are made."""
    algo = built(clock_config(WholeEpisodePPOConfig, gru_dim=0).training(num_epochs=3))
    seen = minibatches_of_one_iteration(algo)
    assert len(seen) == 3 * 8 // 2


def test_first_ratio_is_one(built):
    """What workers store is what the learner computes: nothing to clip before the first update."""
    algo = built(plain_config().episodes(per_minibatch=8).training(num_epochs=1, lr=0.0))
    learner = algo.learner_group._learner
    differences, original = [], learner.compute_losses

    def spy(*, fwd_out, batch):
        own, out = batch["default_policy"], fwd_out["default_policy"]
        logp = out[Columns.ACTION_DIST_INPUTS].log_softmax(-1)
        logp = logp.gather(-1, own[Columns.ACTIONS].long().unsqueeze(-1)).squeeze(-1)
        gap = (logp - own[Columns.ACTION_LOGP])[own[Columns.LOSS_MASK]]
        differences.append(float(gap.detach().abs().max()))
        return original(fwd_out=fwd_out, batch=batch)

    learner.compute_losses = spy
    algo.train()
    assert len(differences) == 1
    assert differences[0] < 1e-5


def test_optimizer_has_the_papers_epsilon(built):
    config = plain_config().training(lr=0.125)
    config.adam_eps = 0.25
    learner = built(config).learner_group._learner
    (optimizer,) = (o for _, o in learner.get_optimizers_for_module("default_policy"))
    assert isinstance(optimizer, torch.optim.Adam)
    assert optimizer.param_groups[0]["eps"] == 0.25
    assert optimizer.param_groups[0]["lr"] == 0.125


@pytest.mark.parametrize("gru_dim", [0, 8])
def test_colour_loss_is_drac(built, gru_dim):
    """KL to the policy on the pictures as they are and half the squared change of the value, by
    hand; the plain side gets no gradient, and padding does not count.
    """
    config = plain_config().rl_module(model_config=MODEL | {"gru_dim": gru_dim})
    learner = built(config).learner_group._learner
    module = learner.module["default_policy"].unwrapped()
    shape = (6, 4) if gru_dim else (6,)
    torch.manual_seed(0)
    frames = torch.randint(0, 256, (*shape, 5, 5, 3), dtype=torch.uint8)
    mask = torch.rand(shape) < 0.6
    batch = {Columns.OBS: frames, Columns.LOSS_MASK: mask}
    if gru_dim:
        batch[Columns.STATE_IN] = {"h": torch.zeros(6, gru_dim)}
    fwd_out = module.forward_train(batch)
    torch.manual_seed(7)
    loss = colour_loss(module, batch, fwd_out)
    torch.manual_seed(7)
    other = module.forward_train(batch | {Columns.OBS: shift_colours(frames)})
    terms = []
    for where in mask.nonzero().tolist():
        p = fwd_out[Columns.ACTION_DIST_INPUTS][tuple(where)].softmax(-1)
        q = other[Columns.ACTION_DIST_INPUTS][tuple(where)].softmax(-1)
        v = module.value(fwd_out[Columns.EMBEDDINGS][tuple(where)])
        w = module.value(other[Columns.EMBEDDINGS][tuple(where)])
        terms.append(sum(a * torch.log(a / b) for a, b in zip(p, q, strict=True)))
        terms[-1] = terms[-1] + (v - w).squeeze() ** 2 / 2
    torch.testing.assert_close(loss, torch.stack(terms).mean())
    assert loss > 0
    for out in (fwd_out[Columns.ACTION_DIST_INPUTS], fwd_out[Columns.EMBEDDINGS]):
        (gradient,) = torch.autograd.grad(loss, [out], retain_graph=True, allow_unused=True)
        assert gradient is None


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_colour_loss_is_paid_only_when_asked_for(built, weight):
    learned = built(plain_config().training(colour_coeff=weight)).train()["learners"]
    assert ("colour_loss" in learned["default_policy"]) == (weight > 0)


def test_reward_model_sits_on_the_learners_device(built):
    algo = built(keys_config())
    learner = algo.learner_group._learner
    model = reward_learner(algo).model
    assert {p.device for p in model.parameters()} == {torch.device(learner._device)}
    # And RLlib's updates leave it alone: its parameters belong to no optimizer of RLlib.
    groups = [g for o in learner._named_optimizers.values() for g in o.param_groups]
    theirs = {id(p) for group in groups for p in group["params"]}
    assert theirs
    assert theirs.isdisjoint(id(p) for p in model.parameters())


@pytest.mark.parametrize("config", [plain_config, keys_config])
def test_reward_model_only_when_there_is_one(built, config):
    algo = built(config())
    learner = algo.learner_group._learner
    result = algo.train()
    has_model = config is keys_config
    assert (learner.reward_model is not None) == has_model
    assert ("conspec" in result) == has_model
    assert ("intrinsic_return_mean" in result["env_runners"]) == has_model
    assert (COMPONENT_REWARD_MODEL in learner.get_state()) == has_model


def test_weight_sync_does_not_carry_the_memories(built):
    learner = built(keys_config()).learner_group._learner
    assert COMPONENT_REWARD_MODEL in learner.get_state()
    assert COMPONENT_REWARD_MODEL not in learner.get_state(components=COMPONENT_RL_MODULE)
    assert COMPONENT_REWARD_MODEL not in learner.get_state(not_components=COMPONENT_REWARD_MODEL)


def test_episodes_whose_worker_died_are_left_out(ray_local):
    """The rest of the batch is learned from all the same."""

    @ray.remote(num_cpus=0)
    class Owner:
        def put(self, frames):
            # A reference inside a list is not resolved on its way to the driver.
            return [ray.put(StoredEpisode.of(frames, False))]

    mortal, other = Owner.remote(), Owner.remote()
    frames = [np.full((100, 5, 5, 3), i, np.uint8) for i in (1, 2)]
    (lost,), (kept,) = (
        ray.get(owner.put.remote(f)) for owner, f in zip((mortal, other), frames, strict=True)
    )
    ray.kill(mortal)
    deadline = time.monotonic() + 60
    while _fetch([(lost, True)]):  # Ray takes a second or two to notice
        assert time.monotonic() < deadline
        time.sleep(0.2)
    found = _fetch([(lost, True), (kept, True)])
    assert len(found) == 1
    np.testing.assert_array_equal(found[0].frames, frames[1])
    assert found[0].success
    assert found[0].frames.flags.owndata


@pytest.fixture(scope="module")
def two_learners(ray_local):
    """Two learners that share seven episodes: an even share would cut one of them."""
    config = keys_config().episodes(per_batch=7, per_minibatch=1)
    algo = config.learners(num_learners=2, num_gpus_per_learner=0).build_algo()
    yield algo
    algo.stop()


def on_learners(algo, function):
    return [result.get() for result in algo.learner_group.foreach_learner(function)]


def test_two_learners_hold_the_same_memories_and_prototypes(two_learners):
    for _ in range(3):
        result = two_learners.train()

    def contents(learner):
        model = learner.reward_model
        return {
            "prototypes": {k: v.cpu().numpy() for k, v in model.model.state_dict().items()},
            "policy": {
                k: v.cpu().numpy() for k, v in learner.module["default_policy"].state_dict().items()
            },
            "successes": [e.frames.tobytes() for e in model.successes],
            "failures": [e.frames.tobytes() for e in model.failures],
            "exemplars": sorted(model.exemplars),
            "streak": model.streak.tolist(),
        }

    a, b = on_learners(two_learners, contents)
    assert result["conspec"]["successes"] == len(a["successes"]) > 0
    for name in ("successes", "failures", "exemplars", "streak"):
        assert a[name] == b[name], name
    for name in ("prototypes", "policy"):
        for key, value in a[name].items():
            np.testing.assert_array_equal(value, b[name][key], err_msg=f"{name} {key}")


def test_two_learners_get_whole_episodes(two_learners):
    """A second half without its beginning would start from an empty memory."""

    def watch(learner):
        learner.lengths, original = [], learner.compute_losses

        def spy(*, fwd_out, batch):
            learner.lengths += batch["default_policy"][Columns.LOSS_MASK].sum(1).tolist()
            return original(fwd_out=fwd_out, batch=batch)

        learner.compute_losses = spy

    on_learners(two_learners, watch)
    shortest = two_learners.train()["env_runners"]["episode_len_min"]
    lengths = on_learners(two_learners, lambda learner: learner.lengths)
    assert all(lengths)
    assert min(min(own) for own in lengths) >= shortest
