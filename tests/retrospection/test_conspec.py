"""The learner: freezing, recruiting, paying, saving, and learning at all."""

import copy
import hashlib
import pickle

import builders
import literal
import numpy as np
import pytest
import torch
from builders import marked_episode, marked_episodes, marker_step
from learners import GAMMA, QUICK, SHAPE, iterate, new_learner

from rllib_conspec.retrospection import conspec
from rllib_conspec.retrospection.conspec import ConSpecLearner, ConSpecModel
from rllib_conspec.retrospection.memory import StoredEpisode
from rllib_conspec.retrospection.scorer import ConSpecScorer, Snapshot, episode_scores
from rllib_conspec.retrospection.step import best_matches
from rllib_conspec.retrospection.success import EpisodeSummary


def weights(learner):
    return {name: p.detach().clone() for name, p in learner.model.named_parameters()}


def same_weights(a, b):
    return all(torch.equal(p, b[name]) for name, p in a.items())


def checksum(episodes):
    return hashlib.sha256(b"".join(e.frames.tobytes() for e in episodes)).hexdigest()


# --- learning ---------------------------------------------------------------------------------


# Prototypes that share a projection may start where all of it is off for them, and stay there.
@pytest.mark.parametrize(("projection", "enough"), [("per_prototype", 2), ("shared", 1)])
def test_a_marker_that_only_successes_show_is_found(projection, enough):
    o = builders.options(
        **QUICK
        | {"num_prototypes": 2, "memory_size": 8, "memory_batch": 8, "projection": projection}
        | {"threshold": 0.6, "freeze_after": 10, "diversity_coeff": 0.0}
    )
    learner, rng, metrics = ConSpecLearner(o, SHAPE, seed=0), np.random.default_rng(0), []
    while learner.met.sum() < enough:
        metrics += iterate(learner, rng, 1)
        assert learner.version < 60
    assert metrics[-1]["frozen"] == enough
    first_loss = next(m["loss"] for m in metrics if "loss" in m)
    assert metrics[-1]["loss"] < 0.7 * first_loss

    unseen = [marked_episode(rng, True) for _ in range(20)]
    for episode, s in zip(unseen, episode_scores(learner.model, unseen), strict=True):
        assert (s[learner.met].argmax(axis=1) == marker_step(episode)).all()


def test_diversity_makes_prototypes_find_different_markers():
    o = builders.options(
        **QUICK
        | {"num_prototypes": 2, "memory_size": 8, "memory_batch": 8, "diversity_coeff": 0.2}
        | {"threshold": 0.6, "freeze_after": 10}
    )
    learner, rng = ConSpecLearner(o, SHAPE, seed=0), np.random.default_rng(0)

    def doubly_marked(success):
        """Successes show the marker, and later its opposite."""
        first, second = marked_episode(rng, success), marked_episode(rng, success)
        return StoredEpisode.of(np.concatenate([first.frames, -second.frames]), success)

    while not learner.met.all():
        learner.add([doubly_marked(k < 2) for k in range(5)])
        learner.step()
        assert learner.version < 150
    unseen = [doubly_marked(True) for _ in range(20)]
    halves = np.array([s.argmax(axis=1) // 8 for s in episode_scores(learner.model, unseen)])
    assert sorted(np.round(halves.mean(axis=0), 1)) == [0.0, 1.0]


def test_nothing_is_learned_before_the_successes_suffice():
    learner, rng = new_learner(min_successes=3), np.random.default_rng(0)
    before = weights(learner)
    learner.add(marked_episodes(rng, 2, 5))
    assert "loss" not in learner.step()
    assert same_weights(before, weights(learner))
    learner.add(marked_episodes(rng, 1, 0))
    assert "loss" in learner.step()
    assert not same_weights(before, weights(learner))


def test_nothing_is_learned_without_a_failure():
    learner, rng = new_learner(), np.random.default_rng(0)
    learner.add(marked_episodes(rng, 4, 0))
    before = weights(learner)
    assert "loss" not in learner.step()
    assert same_weights(before, weights(learner))


def test_the_memory_size_is_the_default_of_successes_needed():
    learner, rng = new_learner(), np.random.default_rng(0)
    learner.add(marked_episodes(rng, 3, 3))
    assert not learner.learning
    learner.add(marked_episodes(rng, 1, 0))
    assert learner.learning


def test_a_step_lowers_the_literal_loss_and_reports_it():
    learner, rng = new_learner(num_prototypes=3, lr=1e-3), np.random.default_rng(0)
    learner.add(marked_episodes(rng, 4, 4))
    memories = tuple(learner.successes), tuple(learner.failures)

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
    before, held = weights(constant), checksum(constant.successes)
    metrics = iterate(constant, rng, 3)
    assert same_weights(before, weights(constant))
    assert checksum(constant.successes) == held
    assert constant.snapshot().pays.tolist() == learner.met.tolist()
    assert metrics[-1]["version"] == learner.version + 3


def test_several_steps_per_iteration_are_as_many_single_ones():
    many, single = new_learner(steps_per_iteration=3), new_learner()
    batch = marked_episodes(np.random.default_rng(0), 4, 4)
    many.add(batch)
    single.add(batch)
    many.step()
    assert not same_weights(weights(many), weights(single))
    for _ in range(3):
        single.step()
    assert same_weights(weights(many), weights(single))
    assert (many.streak == single.streak).all()


def test_stop_gradient_trains_all_but_the_vectors():
    learner, rng = new_learner(stop_gradient=True, weight_decay=0.1), np.random.default_rng(0)
    before = weights(learner)
    iterate(learner, rng, 6)
    after = weights(learner)
    changed = {name for name in after if not torch.equal(before[name], after[name])}
    assert changed == set(after) - {"vectors"}


def test_the_draw_is_bounded_by_the_batch_options(monkeypatch):
    learner = new_learner(memory_size=6, memory_batch=2, failure_memory_size=9, failure_batch=5)
    sizes = []
    step = ConSpecLearner._gradient_step.__globals__["contrastive_loss"]

    def noting(model, o, active, live, frozen):
        sizes.append((len(live.successes), len(live.failures)))
        return step(model, o, active, live, frozen)

    monkeypatch.setitem(ConSpecLearner._gradient_step.__globals__, "contrastive_loss", noting)
    learner.add(marked_episodes(np.random.default_rng(0), 6, 9))
    learner.step()
    assert sizes == [(2, 5)]


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


# --- memories ---------------------------------------------------------------------------------


def test_memories_are_first_in_first_out_and_bounded():
    learner, rng = new_learner(failure_memory_size=6), np.random.default_rng(0)
    won, lost = [], []
    for _ in range(5):
        batch = marked_episodes(rng, 2, 3)
        rng.shuffle(batch)
        learner.add(batch)
        won += [e for e in batch if e.success]
        lost += [e for e in batch if not e.success]
        assert list(learner.successes) == won[-4:]
        assert list(learner.failures) == lost[-6:]
        counts = learner.step()
        assert counts["successes"] == min(4, len(won))
        assert counts["failures"] == min(6, len(lost))


# --- freezing ---------------------------------------------------------------------------------


def test_a_prototype_freezes_after_exactly_so_many_steps_above_the_criterion():
    """The learner's bookkeeping against a plain one, while the task changes under it."""
    o = builders.options(**(QUICK | {"num_prototypes": 4, "threshold": 0.4, "freeze_after": 5}))
    learner, rng = ConSpecLearner(o, SHAPE, seed=3), np.random.default_rng(3)
    streak, exemplars, broken = [0] * 4, {}, 0
    for iteration in range(50):
        batch = marked_episodes(rng, 2, 2)
        # Every sixth batch calls successes what are none.
        learner.add([e.judged(True) for e in batch[2:]] if iteration % 6 == 5 else batch)
        memories = tuple(learner.successes), tuple(learner.failures)
        before = copy.deepcopy(learner.model)
        learner.step()
        if len(memories[0]) < o.memory_size:
            continue
        for i in range(4):
            best = [best_matches(before, (i,), e, 1)[0] for e in exemplars.get(i, memories)]
            if i in exemplars:
                continue
            met = literal.meets_criterion(*[list(b) for b in best], o.threshold)
            broken += not met and streak[i] > 0
            streak[i] = streak[i] + 1 if met else 0
            assert learner.streak[i] == streak[i]
            if streak[i] == o.freeze_after:
                exemplars[i] = memories
        assert set(np.flatnonzero(learner.met)) == set(exemplars)
        assert learner.exemplars.keys() == exemplars.keys()
        for i, (won, lost) in exemplars.items():
            assert learner.exemplars[i].successes == won
            assert learner.exemplars[i].failures == lost
    assert broken >= 1  # the test saw a streak that was reset
    assert (
        len({id(won) for won, _ in exemplars.values()}) >= 2
    )  # and more than one time of freezing


def test_a_streak_that_is_long_enough_counts_though_the_iteration_goes_on():
    """Freezing depends on gradient steps, not on how many of them an iteration has."""
    seen_broken = False
    for seed in range(8):
        # Without exemplars, so that freezing itself changes nothing in what follows.
        values = {"num_prototypes": 4, "freeze_after": 2, "lr": 0.1, "freeze": False}
        many = new_learner(seed=seed, steps_per_iteration=6, **values)
        single = new_learner(seed=seed, **values)
        batch = marked_episodes(np.random.default_rng(seed), 4, 4)
        many.add(batch)
        single.add(batch)
        many.step()
        for _ in range(6):
            single.step()
        seen_broken |= bool((single.met & (single.streak < 2)).any())
        assert many.met.tolist() == single.met.tolist()
    assert seen_broken


def test_exemplars_never_change():
    learner, rng = new_learner(num_prototypes=2), np.random.default_rng(0)
    while len(learner.exemplars) < 2:
        iterate(learner, rng, 1)
        assert learner.version < 60
    before = {
        i: (checksum(e.successes), checksum(e.failures)) for i, e in learner.exemplars.items()
    }
    objects = {i: (e.successes, e.failures) for i, e in learner.exemplars.items()}
    iterate(learner, rng, 10)
    assert {
        i: (checksum(e.successes), checksum(e.failures)) for i, e in learner.exemplars.items()
    } == before
    assert {i: (e.successes, e.failures) for i, e in learner.exemplars.items()} == objects
    assert checksum(learner.successes) not in {s for s, _ in before.values()}


@pytest.mark.parametrize("scaling", ["mean", "sum"])
def test_live_prototypes_learn_from_the_memories_and_frozen_ones_from_their_exemplars(scaling):
    learner = new_learner(recruit=True, recruit_start=1, diversity_scaling=scaling)
    rng = np.random.default_rng(0)
    while not learner.exemplars:
        iterate(learner, rng, 1)
        assert learner.version < 60
    iterate(learner, rng, 1)
    learner.add(marked_episodes(rng, 2, 3))
    assert (learner.active, list(learner.exemplars)) == (2, [0])
    expected = literal.loss(
        copy.deepcopy(learner.model).double(),
        learner.options,
        2,
        (tuple(learner.successes), tuple(learner.failures)),
        {i: (e.successes, e.failures) for i, e in learner.exemplars.items()},
    )
    metrics = learner.step()
    for name in ("success", "failure", "diversity"):
        assert metrics[f"loss_{name}"] == pytest.approx(getattr(expected, name).item(), abs=1e-4)


def test_frozen_prototypes_keep_training():
    learner, rng = new_learner(num_prototypes=1), np.random.default_rng(0)
    while not learner.exemplars:
        iterate(learner, rng, 1)
        assert learner.version < 60
    before = weights(learner)
    learner.step()
    assert not torch.equal(before["vectors"], weights(learner)["vectors"])


@pytest.mark.parametrize("scaling", ["mean", "sum"])
def test_several_steps_per_iteration_go_on_when_all_are_frozen(scaling):
    learner = new_learner(num_prototypes=2, steps_per_iteration=3, diversity_scaling=scaling)
    rng = np.random.default_rng(0)
    while not learner.met.all():
        iterate(learner, rng, 1)
        assert learner.version < 60
    before = weights(learner)
    (metrics,) = iterate(learner, rng, 1)
    after = weights(learner)
    # Both took part, though not in every one of the three steps.
    assert all(not torch.equal(before["vectors"][i], after["vectors"][i]) for i in range(2))
    assert metrics["separation"].keys() == {"0", "1"}


@pytest.mark.parametrize(("in_turn", "times"), [(True, [1, 1, 0]), (False, [2, 2, 2])])
def test_frozen_prototypes_take_part_in_turn_or_in_every_step(monkeypatch, in_turn, times):
    learner = new_learner(num_prototypes=2, steps_per_iteration=3, frozen_in_turn=in_turn)
    rng = np.random.default_rng(0)
    while not learner.met.all():
        iterate(learner, rng, 1)
        assert learner.version < 60
    taking_part, original = [], conspec.contrastive_loss

    def counted(model, options, active, live, frozen):
        taking_part.append(len(frozen))
        return original(model, options, active, live, frozen)

    monkeypatch.setattr(conspec, "contrastive_loss", counted)
    learner.step()
    assert taking_part == [n for n in times if n]


def test_without_freezing_prototypes_pay_but_have_no_exemplars():
    learner, rng = new_learner(freeze=False), np.random.default_rng(0)
    iterate(learner, rng, 40)
    assert learner.met.any()
    assert learner.exemplars == {}
    assert learner.snapshot().pays.tolist() == learner.met.tolist()


def test_freeze_distinct_leaves_a_step_to_the_prototype_that_found_it_first():
    """The task has one marker, and without diversity both prototypes go for it."""
    values = {"num_prototypes": 2, "memory_size": 8, "memory_batch": 8, "diversity_coeff": 0.0}
    values |= {"threshold": 0.6, "freeze_after": 10}
    free, distinct = new_learner(**values), new_learner(**values, freeze_distinct=True)
    for learner in (free, distinct):
        iterate(learner, np.random.default_rng(0), 40)
        assert (learner.streak >= 10).all()
    assert free.met.tolist() == [True, True]
    assert distinct.met.sum() == len(distinct.exemplars) == 1


# --- restarting -------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [{}, {"projection": "shared"}, {"stop_gradient": True}], ids=str)
def test_prototypes_that_separate_nothing_start_anew(values):
    """Successes and failures are the same here, so no prototype can separate them."""
    learner = new_learner(restart_after=5, **values)
    rng, frames = np.random.default_rng(0), builders.frames(builders.options(), 6, 0)
    for k in range(8):
        learner.add([StoredEpisode.of(frames, k % 2 == 0)])
    for _ in range(4):
        learner.step()
    assert learner.idle.tolist() == [4] * 3
    before = weights(learner)
    learner.step()
    assert learner.idle.tolist() == [0] * 3
    # A gradient step moves a weight by about the learning rate, a new draw by far more.
    own = {"vectors"} if values.get("projection") else {"vectors", "layer1", "layer2"}
    for name, after in weights(learner).items():
        moved = float((after - before[name]).abs().max())
        assert (moved > 10 * learner.options.lr) == (name in own), name
    for parameter in (learner.model.vectors, learner.model.layer1):
        name = "vectors" if parameter is learner.model.vectors else "layer1"
        if parameter in learner.optimizer.state and name in own:
            assert (learner.optimizer.state[parameter]["exp_avg"] == 0).all()
    iterate(learner, rng, 1)


def test_prototypes_that_met_the_criterion_are_never_restarted():
    learner, rng = new_learner(restart_after=2), np.random.default_rng(0)
    while not learner.met.any():
        iterate(learner, rng, 1)
        assert learner.version < 60
    first = int(np.flatnonzero(learner.met)[0])
    learner.idle[first] = 1000
    before = weights(learner)["vectors"][first]
    iterate(learner, rng, 1)
    moved = (weights(learner)["vectors"][first] - before).abs().max()
    assert float(moved) < 10 * learner.options.lr


def test_without_the_option_nothing_is_restarted():
    learner = new_learner()
    frames = builders.frames(builders.options(), 6, 0)
    for k in range(8):
        learner.add([StoredEpisode.of(frames, k % 2 == 0)])
    before = weights(learner)["vectors"]
    for _ in range(12):
        learner.step()
    assert float((weights(learner)["vectors"] - before).abs().max()) < 14 * learner.options.lr


# --- recruiting -------------------------------------------------------------------------------


def test_recruiting_adds_one_when_all_have_met_the_criterion():
    learner = new_learner(num_prototypes=5, recruit=True, recruit_start=2)
    rng, waited = np.random.default_rng(0), False
    assert learner.active == 2
    while learner.active < 5:
        before, ready = learner.active, learner.met[: learner.active].all()
        (metrics,) = iterate(learner, rng, 1)
        assert metrics["prototypes"] == learner.active
        if learner.active > before:
            assert learner.active == before + 1
            assert learner.met[:before].all()
        else:
            assert not ready
            waited = True
        assert not learner.met[learner.active :].any()
        assert learner.version < 100
    assert waited
    iterate(learner, rng, 20)
    assert learner.active == 5


def test_prototypes_in_waiting_do_not_move():
    learner = new_learner(num_prototypes=5, recruit=True, recruit_start=2, threshold=1.0)
    before = weights(learner)
    iterate(learner, np.random.default_rng(0), 8)
    for name in ("vectors", "layer1", "layer2"):
        after = weights(learner)[name]
        assert torch.equal(after[2:], before[name][2:])
        assert not torch.equal(after[:2], before[name][:2])


# --- held-out episodes ------------------------------------------------------------------------


def test_held_out_episodes_are_the_newest_and_pass_on_in_order():
    learner = new_learner(
        criterion="unseen", unseen_successes=3, unseen_failures=2, failure_memory_size=5
    )
    rng, won, lost = np.random.default_rng(0), [], []
    for size in (1, 1, 2, 5, 0, 3, 1):
        batch = marked_episodes(rng, size, size + 1)
        learner.add(batch)
        won += batch[:size]
        lost += batch[size:]
        assert list(learner.unseen_successes) == won[-3:]
        assert list(learner.unseen_failures) == lost[-2:]
        assert list(learner.successes) == won[:-3][-4:]
        assert list(learner.failures) == lost[:-2][-5:]
        learner.step()


def test_the_unseen_criterion_is_judged_on_held_out_episodes_alone():
    values = {"unseen_successes": 4, "unseen_failures": 3, "unseen_threshold": 0.15}
    learner = new_learner(criterion="unseen", threshold=0.6, **values)
    rng, streak, reached_at_all, refuted = np.random.default_rng(0), [0] * 3, 0, 0
    for _ in range(40):
        iterate(learner, rng, 1)
        if not learner.learning:
            continue
        held = learner.unseen_successes, learner.unseen_failures
        won, lost = (best_matches(learner.model, range(3), e, 1) for e in held)
        for i in range(3):
            separates = float(won[i].mean() - lost[i].mean()) > 0.15
            # Every held-out success must have a match, not only their mean.
            reached = separates and float(won[i].min()) > 0.6
            streak[i] = streak[i] + 1 if reached else 0
            reached_at_all += reached
            refuted += separates and not reached and float(won[i].mean()) > 0.6
        assert learner.streak.tolist() == streak
    assert reached_at_all > 5
    assert refuted > 0


@pytest.mark.parametrize(("share", "forgiven"), [(1.0, False), (0.8, False), (0.75, True)])
def test_some_held_out_successes_may_be_forgiven(monkeypatch, share, forgiven):
    learner = new_learner(
        num_prototypes=1, criterion="unseen", threshold=0.5, unseen_share=share, freeze_after=1000
    )
    rng = np.random.default_rng(0)
    learner.add(marked_episodes(rng, 8, 30))
    matches = iter([torch.tensor([[0.9, 0.9, 0.3, 0.9]]), torch.zeros(1, 16)])
    monkeypatch.setattr(conspec, "best_matches", lambda *_: next(matches))
    learner.step()
    assert (learner.streak[0] > 0) == forgiven


def test_memorising_does_not_meet_the_unseen_criterion():
    """Nothing tells these successes from failures, so only the memories can be told apart."""
    values = {"lr": 0.02, "freeze_after": 5, "threshold": 0.3, "unseen_threshold": 0.3}
    by_memory = new_learner(**values)
    by_unseen = new_learner(**values, criterion="unseen")
    rng = np.random.default_rng(0)

    def lucky(count):
        return [StoredEpisode.of(marked_episode(rng, False).frames, True) for _ in range(count)]

    for learner in (by_memory, by_unseen):
        learner.add(lucky(8) + marked_episodes(rng, 0, 20))
        for _ in range(40):
            learner.step()
    assert by_memory.met.all()
    assert by_unseen.met.sum() < by_memory.met.sum()


# --- paying -----------------------------------------------------------------------------------


def test_who_pays_frozen_or_all():
    rng = np.random.default_rng(0)
    frozen, everyone = new_learner(pay="frozen"), new_learner(pay="all")
    assert not frozen.snapshot().pays.any()
    assert not everyone.snapshot().pays.any()  # nothing is learned yet
    for learner in (frozen, everyone):
        learner.add(marked_episodes(rng, 4, 4))
        learner.step()
    assert not frozen.snapshot().pays.any()
    assert everyone.snapshot().pays.all()
    iterate(frozen, rng, 60)
    assert frozen.met.any()
    assert frozen.snapshot().pays.tolist() == frozen.met.tolist()


def test_prototypes_in_waiting_do_not_pay():
    learner = new_learner(pay="all", num_prototypes=5, recruit=True, recruit_start=2, threshold=1.0)
    iterate(learner, np.random.default_rng(0), 4)
    assert learner.snapshot().pays.tolist() == [True, True, False, False, False]


def test_a_prototype_recruited_but_not_yet_trained_does_not_pay():
    learner = new_learner(pay="all", num_prototypes=3, recruit=True, recruit_start=1)
    rng, start = np.random.default_rng(0), weights(learner)["vectors"]
    while learner.active < 3:
        iterate(learner, rng, 1)
        for i in np.flatnonzero(learner.snapshot().pays):
            assert not torch.equal(weights(learner)["vectors"][i], start[i])
        assert learner.version < 60
    iterate(learner, rng, 1)
    assert learner.snapshot().pays.all()


def test_versions_count_iterations():
    learner, rng = new_learner(), np.random.default_rng(0)
    scorer = ConSpecScorer(learner.options, SHAPE, GAMMA)
    assert (learner.version, scorer.version, learner.snapshot().version) == (0, 0, 0)
    assert learner.step()["version"] == 1  # also when there was nothing to learn from
    assert iterate(learner, rng, 5)[-1]["version"] == 6
    scorer.load(learner.snapshot())
    assert scorer.version == 6
    assert isinstance(learner.snapshot(), Snapshot)


# --- saving -----------------------------------------------------------------------------------

STATES = {
    "plain": {"memory_batch": 2},
    "unseen": {"memory_batch": 2, "criterion": "unseen", "unseen_successes": 2},
    "reservoir": {"memory_batch": 2, "failure_memory": "reservoir"},
    "recruit": {"recruit": True, "recruit_start": 1, "num_prototypes": 4},
    "restart": {"restart_after": 3, "freeze_distinct": True},
    "stop_gradient": {"stop_gradient": True, "weight_decay": 1e-3},
}


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("pickled", [False, True])
def test_a_restored_learner_continues_bit_for_bit(name, pickled):
    learner, rng = new_learner(**STATES[name]), np.random.default_rng(0)
    iterate(learner, rng, 25)
    if name != "unseen":
        assert learner.exemplars  # the state has exemplars in it
    state = pickle.loads(pickle.dumps(learner.get_state())) if pickled else learner.get_state()
    later = np.random.default_rng(7).bit_generator.state

    def go_on(one):
        rng.bit_generator.state = later
        metrics = iterate(one, rng, 10)
        return metrics, weights(one), one

    # The learner goes on first: what it does must not reach the state that was saved.
    expected = go_on(learner)
    for _ in range(2):  # nor must what the restored one does
        restored = new_learner(seed=99, **STATES[name])
        restored.set_state(state)
        found = go_on(restored)
        assert found[0] == expected[0]
        assert same_weights(found[1], expected[1])
        assert (found[2].met == learner.met).all()
        assert (found[2].streak == learner.streak).all()
        assert found[2].version == learner.version
        for i, e in learner.exemplars.items():
            assert checksum(found[2].exemplars[i].successes) == checksum(e.successes)
            assert checksum(found[2].exemplars[i].failures) == checksum(e.failures)


def test_a_restored_learner_still_shares_episodes():
    learner, rng = new_learner(num_prototypes=2), np.random.default_rng(0)
    while not learner.met.all():
        iterate(learner, rng, 1)
        assert learner.version < 60
    state = learner.get_state()

    def different(one):
        sets = [one.successes, one.failures]
        sets += [s for e in one.exemplars.values() for s in (e.successes, e.failures)]
        return len({id(e) for s in sets for e in s})

    restored = new_learner(num_prototypes=2)
    restored.set_state(state)
    assert different(restored) == different(learner) == len(state["episodes"]["frames"])


def test_a_state_is_enough_to_look_at_a_learner():
    learner, rng = new_learner(num_prototypes=2), np.random.default_rng(0)
    iterate(learner, rng, 8)
    found = ConSpecLearner.from_state(pickle.loads(pickle.dumps(learner.get_state())))
    assert found.options == learner.options
    assert same_weights(weights(found), weights(learner))
    assert checksum(found.successes) == checksum(learner.successes)
    assert found.step() == learner.step()


# --- the seam to the RLlib glue -----------------------------------------------------------------


def test_the_reward_model_builds_both_sides_and_chooses():
    o = builders.options(max_new_successes=1)
    model = ConSpecModel(o, GAMMA)
    learner, scorer = model.learner(SHAPE, "cpu", 3), model.scorer(SHAPE)
    assert same_weights(weights(learner), weights(ConSpecLearner(o, SHAPE, seed=3)))
    assert scorer.gamma == GAMMA
    scorer.load(learner.snapshot())
    batch = [EpisodeSummary(float(k % 2), 5, k % 2 == 1) for k in range(6)]
    assert model.judge(batch).tolist() == [False, True] * 3
    chosen = model.choose(batch, np.random.default_rng(0))
    assert sum(success for _, success in chosen) == 1
    assert [i for i, success in chosen if not success] == [0, 2, 4]
