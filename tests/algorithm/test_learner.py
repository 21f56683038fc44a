"""The learner: minibatches of whole episodes, auxiliary losses, reward models beside the policy."""

import numpy as np
import pytest
import torch
from inside import comparable, differences, flat, learner_of, on_learners, reward_learner, states
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.core.columns import Columns
from tiny import clock_config, keys_config, plain_config

from rllib_conspec import WholeEpisodePPOConfig
from rllib_conspec.algorithm.learner import COMPONENT_REWARD_MODEL, policy_batch


def minibatches_of_one_iteration(algo):
    """What each gradient step of one `train()` was computed from: one dict of arrays per step."""
    learner = learner_of(algo)
    seen, original = [], learner.compute_losses

    def spy(*, fwd_out, batch):
        own = batch["default_policy"]
        kept = (k for k in (Columns.OBS, Columns.LOSS_MASK) if k in own)
        seen.append({k: own[k].cpu().numpy() for k in kept})
        return original(fwd_out=fwd_out, batch=batch)

    learner.compute_losses = spy
    algo.train()
    return seen


@pytest.mark.parametrize(
    ("batch", "minibatch", "epochs"), [(8, 4, 2), (8, 8, 3), (6, 1, 1), (49, 1, 1)]
)
def test_gradient_steps_per_iteration(built, batch, minibatch, epochs):
    """49 · (1 / 49) is less than 1: RLlib rounds a minibatch of one in 49 episodes to none."""
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
    algo = built(clock_config(WholeEpisodePPOConfig, core_dim=0).training(num_epochs=3))
    seen = minibatches_of_one_iteration(algo)
    assert len(seen) == 3 * 8 // 2


MEMORIES = {
    "gru": {},
    "rma": {"core": "rma"},
    "rma, in pieces, of which it forgets the oldest": {
        "core": "rma",
        "core_options": {"slots": 9, "reads": 5},
        "max_seq_len": 8,
    },
}


@pytest.mark.parametrize("memory", MEMORIES)
def test_first_ratio_is_one(built, memory):
    """What workers store is what the learner computes: nothing to clip before the first update."""
    config = plain_config().episodes(per_minibatch=8).training(num_epochs=1, lr=0.0)
    algo = built(config.rl_module(model_config=MEMORIES[memory]))
    with torch.no_grad():  # the first policy does the same, whatever it remembers
        for parameter in learner_of(algo).module["default_policy"].parameters():
            parameter *= 3
    algo._news = {}  # workers are told
    learner = learner_of(algo)
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
    learner = learner_of(built(config))
    (optimizer,) = (o for _, o in learner.get_optimizers_for_module("default_policy"))
    assert isinstance(optimizer, torch.optim.Adam)
    assert optimizer.param_groups[0]["eps"] == 0.25
    assert optimizer.param_groups[0]["lr"] == 0.125


# --- auxiliary losses -----------------------------------------------------------------------------


PULL = "tiny:Pull"


@pytest.mark.parametrize("core_dim", [0, 8])
def test_what_an_auxiliary_loss_sees(built, core_dim):
    """The same pass as the policy's, other observations on demand, and where the padding is."""
    config = clock_config(WholeEpisodePPOConfig, core_dim=core_dim)
    learner = learner_of(built(config))
    module = learner.module["default_policy"].unwrapped()
    shape = (6, 4) if core_dim else (6,)
    torch.manual_seed(0)
    batch = {Columns.OBS: torch.randn(*shape, 4), Columns.LOSS_MASK: torch.rand(shape) < 0.6}
    if core_dim:
        batch[Columns.STATE_IN] = {"h": torch.randn(6, core_dim)}
    out = module.forward_train(batch)
    seen = policy_batch(module, batch, out)
    inputs, values = seen.forward(seen.observations)
    torch.testing.assert_close(inputs, seen.inputs)
    torch.testing.assert_close(values, seen.values)
    torch.testing.assert_close(seen.inputs, out[Columns.ACTION_DIST_INPUTS])
    rows = torch.tensor([4, 1])
    some = seen.only(rows)
    inputs_of_some, values_of_some = some.forward(some.observations)
    torch.testing.assert_close(inputs_of_some, inputs[rows])
    torch.testing.assert_close(values_of_some, values[rows])
    assert torch.equal(some.mask, seen.mask[rows])
    other, _ = seen.forward(seen.observations + 1)
    kl = seen.kl(inputs, other)
    p, q = inputs.softmax(-1), other.softmax(-1)
    torch.testing.assert_close(kl, (p * (p / q).log()).sum(-1))
    assert kl.shape == shape
    torch.testing.assert_close(seen.mean(kl), kl[batch[Columns.LOSS_MASK]].mean())


def test_an_auxiliary_loss_is_learned_with_the_policy_and_saved(built, tmp_path):
    config = clock_config(WholeEpisodePPOConfig).training(num_epochs=3, lr=0.01)
    config.training(auxiliary={PULL: {"weight": 0.5}})
    algo = built(config)
    result = algo.train()
    (shown,) = (v for k, v in result["learners"]["default_policy"].items() if "Pull" in k)
    assert shown > 0
    loss = learner_of(algo).auxiliary[PULL]
    assert loss.encoder[0] is learner_of(algo).module["default_policy"].unwrapped().encoder
    assert int(loss.steps) == 3 * 8 // 2
    assert loss.own.item() < 100
    held = loss.own.item()
    algo.save_to_path(tmp_path / "checkpoint")
    algo.train()
    assert loss.own.item() != held
    algo.restore_from_path(tmp_path / "checkpoint")
    assert learner_of(algo).auxiliary[PULL].own.item() == held
    assert int(learner_of(algo).auxiliary[PULL].steps) == 12


@pytest.mark.parametrize("auxiliary", [{}, {"drac": {"coeff": 0.5}}])
def test_an_auxiliary_loss_is_paid_only_when_asked_for(built, auxiliary):
    learned = built(plain_config().training(auxiliary=auxiliary)).train()["learners"]
    assert ("drac_loss" in learned["default_policy"]) == bool(auxiliary)


# --- reward models --------------------------------------------------------------------------------


def test_reward_models_are_on_the_learners_device_and_out_of_reach_of_its_optimizers(built):
    algo = built(keys_config())
    learner = learner_of(algo)
    model = reward_learner(algo).model
    policy = list(learner.module["default_policy"].parameters())
    assert {p.device for p in model.parameters()} == {p.device for p in policy}
    optimizers = [o for _, o in learner.get_optimizers_for_module("default_policy")]
    theirs = {id(p) for o in optimizers for group in o.param_groups for p in group["params"]}
    assert theirs == {id(p) for p in policy}
    assert theirs.isdisjoint(id(p) for p in model.parameters())


@pytest.mark.parametrize("config", [plain_config, keys_config])
def test_reward_model_only_when_there_is_one(built, config):
    algo = built(config())
    learner = learner_of(algo)
    result = algo.train()
    has_model = config is keys_config
    assert (learner.reward_model is not None) == has_model
    assert ("conspec" in result) == has_model
    assert ("intrinsic_return_mean" in result["env_runners"]) == has_model
    assert (COMPONENT_REWARD_MODEL in learner.get_state()) == has_model


def test_weight_sync_does_not_carry_the_memories(built):
    learner = learner_of(built(keys_config()))
    assert COMPONENT_REWARD_MODEL in learner.get_state()
    assert COMPONENT_REWARD_MODEL not in learner.get_state(components=COMPONENT_RL_MODULE)
    assert COMPONENT_REWARD_MODEL not in learner.get_state(not_components=COMPONENT_REWARD_MODEL)


# --- two learners ---------------------------------------------------------------------------------


def two_learner_config():
    """Seven episodes: an even share would cut one of them."""
    config = keys_config().episodes(per_batch=7, per_minibatch=1)
    config.rewards(models={"rnd": {"dim": 8}})
    return config.learners(num_learners=2, num_gpus_per_learner=0)


@pytest.fixture(scope="module")
def two_learners(ray_local):
    algo = two_learner_config().build_algo()
    yield algo
    algo.stop()


# Sizes of the learners' shares, which RLlib smooths on every learner. A checkpoint of RLlib's holds
# one learner's metrics, and all learners go on with those.
SHARE_SIZES = "learners/__all_modules__/learner_connector_sum_episodes_length_"


def policies(algo):
    return on_learners(algo, lambda learner: flat(learner.module.get_state()))


def test_two_learners_hold_the_same_memories_and_models(two_learners):
    for _ in range(3):
        result = two_learners.train()
    a, b = states(two_learners)
    assert a == b
    assert result["conspec"]["successes"] > 0
    assert any("/conspec/memory/episodes" in path for path in a)
    assert any("/rnd/networks" in path for path in a)
    a, b = policies(two_learners)
    assert a == b


def test_two_learners_continue_to_the_digit(two_learners, tmp_path):
    two_learners.save_to_path(tmp_path / "checkpoint")
    uninterrupted = [comparable(two_learners.train()) for _ in range(2)]
    expected = states(two_learners), policies(two_learners)
    two_learners.restore_from_path(tmp_path / "checkpoint")
    for expected_result in uninterrupted:
        different = differences(expected_result, comparable(two_learners.train()))
        assert {k: v for k, v in different.items() if not k.startswith(SHARE_SIZES)} == {}
    assert (states(two_learners), policies(two_learners)) == expected


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


def test_two_learners_go_on_where_one_has_the_longer_episodes(built):
    """A minibatch is then less than one of its episodes, and none would leave the other one waiting
    for its gradients.
    """
    config = clock_config(WholeEpisodePPOConfig).episodes(per_batch=7, per_minibatch=1)
    algo = built(config.learners(num_learners=2, num_gpus_per_learner=0))
    for _ in range(5):
        algo.train()
    a, b = on_learners(algo, lambda own: [p.tolist() for p in own._params.values()])
    assert a == b
