"""What a prototype that is aimed at one marked frame is said to have found."""

import numpy as np
import pytest
import torch

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.conspec.found import coverage, describe, find
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner
from rllib_conspec.reward_models.conspec.memory import Exemplars
from rllib_conspec.reward_models.conspec.model import ConSpecModel
from rllib_conspec.reward_models.conspec.options import ConSpecOptions

MARK = np.array([3.0, -3.0, 3.0, 3.0], dtype=np.float32)
OPTIONS = ConSpecOptions(num_prototypes=2, encoder="mlp", encoder_dim=16, projection_dim=16)
PAYS = 1  # of the two


def episode(frames: np.ndarray, success: bool = False, events=()) -> Episode:
    """An episode that leads to these frames [T, *shape]."""
    observations = np.concatenate([np.zeros_like(frames[:1]), frames])
    steps = np.zeros(len(frames))
    return Episode(observations, steps.astype(int), steps, success=success, events=events)


def noise(rng: np.random.Generator, success: bool, length: int = 12) -> Episode:
    """Noise; a success has one marked frame, at a random step that is an event."""
    frames = rng.normal(size=(length, 4)).astype(np.float32)
    if not success:
        return episode(frames)
    t = int(rng.integers(length))
    frames[t] = MARK
    return episode(frames, True, ((t, "mark 1"),))


@pytest.fixture
def learner() -> ConSpecLearner:
    """One prototype points exactly where the marked frame is projected to."""
    rng = np.random.default_rng(0)
    learner = ConSpecLearner(OPTIONS, (4,), seed=0)
    won, lost = [[noise(rng, success) for _ in range(8)] for success in (True, False)]
    learner.add(won, lost)
    aim(learner, MARK)
    learner.memory.exemplars[PAYS] = Exemplars(
        tuple(learner.memory.successes), tuple(learner.memory.failures)
    )
    return learner


def aim(learner: ConSpecLearner, frame: np.ndarray) -> None:
    model = learner.model
    with torch.no_grad():
        z = model.encode(torch.from_numpy(frame[None]))
        # Cosines with the unit vectors are the coordinates of the projection.
        width = model.vectors.shape[1]
        point = torch.empty(width)
        for k, unit in enumerate(torch.eye(width)):
            model.vectors[PAYS] = unit
            point[k] = model.scores(z, torch.tensor([PAYS]))[0, 0]
        model.vectors[PAYS] = point
    learner.met[PAYS] = True


def test_names_the_step_that_the_prototype_found(learner):
    (found,) = find(learner)
    assert found.prototype == PAYS
    assert found.name == "mark 1" and found.events == {"mark 1": 1.0}
    assert all(
        (e.frames[t] == MARK).all() for e, t in zip(found.episodes, found.steps, strict=True)
    )
    assert str(found).startswith("prototype 1: mark 1 (100% of successes), step ")
    assert "match 1.00, separation 0." in str(found)


def test_separation_is_measured_on_the_episodes_given(learner):
    rng = np.random.default_rng(7)
    won, lost = [[noise(rng, success) for _ in range(10)] for success in (True, False)]
    assert find(learner, won, lost)[0].separation > 0.05
    assert find(learner, lost, lost)[0].separation == pytest.approx(0, abs=1e-6)


def test_a_match_far_from_the_event_does_not_count(learner):
    rng = np.random.default_rng(8)
    won = [noise(rng, True, length=40) for _ in range(10)]
    assert coverage(learner, won) == {"mark 1": 1.0}
    moved = [
        episode(e.frames, True, tuple(((t + 10) % 40, name) for t, name in e.events)) for e in won
    ]
    assert coverage(learner, moved) == {"mark 1": 0.0}


def test_different_frames_come_before_repeats_and_better_ones_before_worse(learner):
    rng = np.random.default_rng(1)
    near = [MARK + rng.normal(scale=0.3, size=4).astype(np.float32) for _ in range(3)]
    won = [episode(np.stack([0 * MARK, f]), True) for f in (MARK, MARK, near[0], near[1], near[0])]
    (found,) = find(learner, won, won)
    moments = found.moments
    assert len(moments) == 5
    shown = [m.episode.frames[m.step] for m in moments]
    assert len({f.tobytes() for f in shown[:3]}) == 3
    assert (shown[0] == MARK).all()
    assert [m.score for m in moments[:3]] == sorted((m.score for m in moments[:3]), reverse=True)
    assert {f.tobytes() for f in shown[3:]} == {MARK.tobytes(), near[0].tobytes()}


def test_the_description_has_a_line_and_a_row_for_every_prototype_that_pays(learner):
    description = ConSpecModel.describe(learner.get_state())
    assert description.lines == (str(find(learner)[0]),)
    (row,) = description.galleries["prototypes"]
    assert row.title == "prototype 1: mark 1"
    assert len(row.moments) == 8
    assert all((m.episode.frames[m.step] == MARK).all() for m in row.moments)


def test_a_prototype_without_exemplars_is_shown_in_the_memories(learner):
    learner.memory.exemplars.clear()
    assert len(find(learner)[0].episodes) == len(learner.memory.successes) == 8


def test_before_anything_is_found():
    description = describe(ConSpecLearner(OPTIONS, (4,), seed=0))
    assert description.lines == ("no critical step yet: no prototype has met the criterion",)
    assert not description.galleries


def test_what_a_report_shows_besides(learner):
    """Scores of both kinds of episodes, when it met the criterion, how it does on unseen ones, and
    two episodes as a whole.
    """
    learner.met[PAYS], learner.met_at, learner.batches = True, {PAYS: 3}, 7
    learner.unseen_separation[PAYS] = 0.625
    description = ConSpecModel.describe(learner.get_state())  # through a checkpoint
    (row,) = description.galleries["prototypes"]
    assert [t.success for t in row.traces] == [True] * 8 + [False] * 8
    matches = [float(t.scores.max()) for t in row.traces]
    assert min(matches[:8]) > 0.9999 > 0.999 > max(matches[8:])
    assert row.facts["separation, unseen"] == "0.62" and row.facts["froze"] == "update 3 of 7"
    success, failure = description.timelines
    assert (success.title, failure.title) == ("a success", "a failure")
    ((t, _),) = success.episode.events
    assert int(success.scores[row.title].argmax()) == t and len(failure.scores[row.title]) == 12
