"""The learner: what it takes in, when it learns, and that it finds what only successes show."""

import copy

import builders
import literal
import numpy as np
import pytest
import torch
from builders import contents, episode, marked_episode, marked_episodes, marker_step
from learners import checksum, iterate, new_learner, same_weights, until, weights

from rllib_conspec.reward_models.conspec import learner as learner_module
from rllib_conspec.reward_models.conspec.scorer import episode_scores

# --- memories ---------------------------------------------------------------------------------


def test_memories_are_first_in_first_out_and_bounded():
    learner, rng = new_learner(), np.random.default_rng(0)
    won, lost = [], []
    for _ in range(5):
        new = marked_episodes(rng, 2, 3)
        learner.add(*new)
        won += new[0]
        lost += new[1]
        assert contents(learner.memory.successes) == contents(won[-4:])
        assert contents(learner.memory.failures) == contents(lost[-4:])
        assert learner.memory.seen == (len(won), len(lost))
        counts = learner.step()
        assert counts["successes"] == min(4, len(won))
        assert counts["failures"] == min(4, len(lost))


def test_what_is_kept_is_a_copy_without_what_is_not_used():
    """Frames may be pieces of a worker's block, which would be held as a whole."""
    learner = new_learner()
    block = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    given = episode(block[3:9], True)
    given.outputs["heavy"] = np.zeros((6, 1000))
    learner.add([given], [])
    (kept,) = learner.memory.successes
    before = kept.frames.copy()
    given.observations[:] = 0
    assert (kept.frames == before).all()
    assert kept.unpacked().outputs == {}


# --- learning ---------------------------------------------------------------------------------


# Prototypes that share a projection may start where all of it is off for them, and stay there.
@pytest.mark.parametrize(("form", "enough"), [("mixed", 2), ("code", 1), ("paper", 1)])
def test_a_marker_that_only_successes_show_is_found(form, enough):
    learner = new_learner(
        **{"num_prototypes": 2, "memory_size": 8, "memory_batch": 8, "form": form},
        **{"threshold": 0.6, "freeze_after": 10, "diversity_coeff": 0.0},
    )
    rng = np.random.default_rng(0)
    metrics = until(lambda: learner.met.sum() >= enough, learner, rng)
    assert metrics[-1]["frozen"] == enough
    first_loss = next(m["loss"] for m in metrics if "loss" in m)
    assert metrics[-1]["loss"] < 0.7 * first_loss

    unseen = [marked_episode(rng, True) for _ in range(20)]
    for one, s in zip(unseen, episode_scores(learner.model, unseen), strict=True):
        assert (s[learner.met].argmax(axis=1) == marker_step(one)).all()


def test_diversity_makes_prototypes_find_different_markers():
    learner = new_learner(
        **{"num_prototypes": 2, "memory_size": 8, "memory_batch": 8, "diversity_coeff": 0.2},
        **{"threshold": 0.6, "freeze_after": 10},
    )
    rng = np.random.default_rng(0)

    def doubly_marked(success):
        """Successes show the marker, and later its opposite."""
        first, second = marked_episode(rng, success), marked_episode(rng, success)
        return episode(np.concatenate([first.frames, -second.frames]), success)

    while not learner.met.all():
        learner.add([doubly_marked(True) for _ in range(2)], [doubly_marked(False) for _ in "123"])
        learner.step()
        assert learner.iterations < 150
    unseen = [doubly_marked(True) for _ in range(20)]
    halves = np.array([s.argmax(axis=1) // 8 for s in episode_scores(learner.model, unseen)])
    assert sorted(np.round(halves.mean(axis=0), 1)) == [0.0, 1.0]


def test_nothing_is_learned_before_the_successes_suffice():
    learner, rng = new_learner(min_successes=3), np.random.default_rng(0)
    before = weights(learner)
    learner.add(*marked_episodes(rng, 2, 5))
    assert "loss" not in learner.step()
    assert same_weights(before, weights(learner))
    learner.add(*marked_episodes(rng, 1, 0))
    assert "loss" in learner.step()
    assert not same_weights(before, weights(learner))


def test_nothing_is_learned_without_a_failure():
    learner, rng = new_learner(), np.random.default_rng(0)
    learner.add(*marked_episodes(rng, 4, 0))
    before = weights(learner)
    assert "loss" not in learner.step()
    assert same_weights(before, weights(learner))


def test_the_memory_size_is_the_default_of_successes_needed():
    learner, rng = new_learner(), np.random.default_rng(0)
    learner.add(*marked_episodes(rng, 3, 3))
    assert not learner.learning
    learner.add(*marked_episodes(rng, 1, 0))
    assert learner.learning


def test_iterations_with_learning_in_them_are_counted():
    learner, rng = new_learner(steps_per_iteration=3), np.random.default_rng(0)
    learner.step()
    iterate(learner, rng, 1)
    assert learner.iterations == 0
    iterate(learner, rng, 4)
    assert learner.iterations == 4


@pytest.mark.parametrize("form", builders.FORMS)
def test_a_step_lowers_the_literal_loss_and_reports_it(form):
    learner = new_learner(num_prototypes=3, lr=1e-3, form=form)
    learner.add(*marked_episodes(np.random.default_rng(0), 4, 4))
    memories = tuple(learner.memory.successes), tuple(learner.memory.failures)

    def literal_loss():
        model = copy.deepcopy(learner.model).double()
        return literal.loss(model, learner.options, 3, memories, {})

    before = literal_loss()
    metrics = learner.step()
    assert metrics["loss"] == pytest.approx(before.total.item(), abs=1e-4)
    for name in ("success", "failure", "diversity"):
        assert metrics[f"loss_{name}"] == pytest.approx(getattr(before, name).item(), abs=1e-4)
    for i in range(3):
        gap = (
            torch.stack(before.success_best[i]).mean() - torch.stack(before.failure_best[i]).mean()
        )
        assert metrics["separation"][str(i)] == pytest.approx(gap.item(), abs=1e-5)
    assert literal_loss().total.item() < before.total.item()


def test_without_learning_a_restored_learner_stays_and_pays():
    learner, rng = new_learner(), np.random.default_rng(0)
    iterate(learner, rng, 30)
    assert learner.met.any()
    constant = new_learner(seed=1, learn=False)
    constant.set_state(learner.get_state())
    before, held = weights(constant), checksum(constant.memory.successes)
    metrics = iterate(constant, rng, 3)
    assert same_weights(before, weights(constant))
    assert checksum(constant.memory.successes) == held
    assert constant.snapshot().pays.tolist() == learner.met.tolist()
    assert "loss" not in metrics[-1]
    assert metrics[-1]["frozen"] == learner.met.sum()


def test_several_steps_per_iteration_are_as_many_single_ones(monkeypatch):
    """Exactly so where all frames stay candidates."""
    monkeypatch.setattr(learner_module, "CANDIDATES", 8)
    many, single = new_learner(steps_per_iteration=3), new_learner()
    new = marked_episodes(np.random.default_rng(0), 4, 4)
    many.add(*new)
    single.add(*new)
    many.step()
    assert not same_weights(weights(many), weights(single))
    for _ in range(3):
        single.step()
    for name, expected in weights(single).items():
        torch.testing.assert_close(weights(many)[name], expected, atol=1e-5, rtol=1e-4)
    assert (many.streak == single.streak).all()


def test_with_few_candidates_several_steps_find_the_marker_as_soon(monkeypatch):
    values = {"num_prototypes": 2, "memory_size": 8, "memory_batch": 8, "steps_per_iteration": 4}
    values |= {"threshold": 0.6, "freeze_after": 10, "diversity_coeff": 0.0}
    needed = []
    for candidates in (3, 8):
        monkeypatch.setattr(learner_module, "CANDIDATES", candidates)
        learner, rng = new_learner(**values), np.random.default_rng(0)
        needed.append(len(until(learner.met.all, learner, rng)))
    assert needed[0] <= 1.5 * needed[1]


def test_stop_gradient_trains_all_but_the_vectors():
    learner, rng = new_learner(stop_gradient=True, weight_decay=0.1), np.random.default_rng(0)
    before = weights(learner)
    iterate(learner, rng, 6)
    after = weights(learner)
    changed = {name for name in after if not torch.equal(before[name], after[name])}
    assert changed == set(after) - {"vectors"}


def test_the_draw_is_bounded_by_the_batch_options(monkeypatch):
    learner = new_learner(memory_size=6, memory_batch=2)
    sizes, original = [], learner_module.contrastive_loss

    def noting(view, o, active, live, frozen):
        sizes.append((len(live.successes), len(live.failures)))
        return original(view, o, active, live, frozen)

    monkeypatch.setattr(learner_module, "contrastive_loss", noting)
    learner.add(*marked_episodes(np.random.default_rng(0), 6, 9))
    learner.step()
    assert sizes == [(2, 2)]


def test_same_seed_same_result():
    results = []
    for seed in (1, 1, 2):
        learner = new_learner(seed=seed, memory_batch=2)
        metrics = iterate(learner, np.random.default_rng(0), 8)
        results.append((weights(learner), metrics))
    assert same_weights(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]
    assert not same_weights(results[0][0], results[2][0])


def test_building_a_learner_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    new_learner()
    assert torch.equal(torch.rand(2), expected)
