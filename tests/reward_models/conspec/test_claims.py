"""What a frozen prototype has found is not to be had by others: live ones look elsewhere, and those
frozen later do not drift there.
"""

import builders
import numpy as np
import pytest
from builders import MARKER
from learners import new_learner

from rllib_conspec.reward_models.conspec.learner import OWN_TIME
from rllib_conspec.reward_models.conspec.scorer import episode_scores

OTHER = np.array([-3.0, 3.0, 3.0, -3.0], dtype=np.float32)
OPTIONS = {
    "memory": "ages",
    "num_prototypes": 4,
    "memory_size": 64,
    "memory_batch": 16,
    "threshold": 0.4,
    "freeze_after": 12,
    "steps_per_iteration": 4,
    "failure_coeff": 1.3,
    "diversity_coeff": 0.0,
    "min_successes": 4,
    "freeze_distinct": True,
}


def two_markers(rng, success):
    """A success shows both, a failure now and then the other one alone. With their steps."""
    steps = rng.normal(size=(16, 4)).astype(np.float32)
    first, second = int(rng.integers(0, 5)), int(rng.integers(10, 16))
    if success or rng.random() < 0.3:
        steps[first] = OTHER + rng.normal(scale=0.1, size=4)
    if success:
        steps[second] = MARKER + rng.normal(scale=0.1, size=4)
    return builders.episode(steps, success), (first, second)


def train(learner, rng, iterations):
    for _ in range(iterations):
        kinds = [[two_markers(rng, won)[0] for _ in range(8)] for won in (True, False)]
        learner.add(*kinds)
        learner.step()


def where(learner, rng):
    """Of new successes, the share in which each frozen prototype's best match is at the other
    marker and at the one that only successes have: {prototype: (share, share)}.
    """
    made = [two_markers(rng, True) for _ in range(50)]
    scores = episode_scores(learner.model, [episode for episode, _ in made])
    at = np.array([s.argmax(axis=1) for s in scores])  # [episodes, prototypes]
    steps = np.array([steps for _, steps in made])
    return {
        int(i): tuple((at[:, i] == steps[:, kind]).mean() for kind in (0, 1))
        for i in np.flatnonzero(learner.met)
    }


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_both_markers_are_found_and_kept(seed):
    learner, rng = new_learner(seed, **OPTIONS), np.random.default_rng(seed)
    for _ in range(60):
        train(learner, rng, 1)
        found = where(learner, rng)
        if {tuple(np.round(shares)) for shares in found.values()} >= {(0, 1), (1, 0)}:
            break
    else:
        raise AssertionError(f"only {found} after 60 iterations")
    other = [i for i, shares in found.items() if shares[0] > 0.5]
    train(learner, rng, 40)
    later = where(learner, rng)
    assert all(later[i][0] > 0.9 for i in other)  # though the rare one separates better


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("diversity", ["cosine", "entropy"])
def test_learning_goes_on_when_all_are_frozen(steps, diversity):
    options = OPTIONS | {"steps_per_iteration": steps, "diversity": diversity}
    learner, rng = new_learner(0, **options | {"diversity_coeff": 0.1}), np.random.default_rng(0)
    train(learner, rng, 8)
    for i in range(4):
        if i not in learner.memory.frozen:
            learner.met[i] = True
            learner.memory.freeze(i)
    before = learner.model.vectors.detach().clone()
    learner.step()
    after = learner.model.vectors.detach()
    assert after.isfinite().all() and (before != after).any(dim=1).all()


def neighbours(rng, shown):
    """An episode that shows these markers, one right after the other."""
    steps = rng.normal(size=(16, 4)).astype(np.float32)
    at = int(rng.integers(0, 15))
    for n, marker in enumerate((OTHER, MARKER)):
        if n in shown:
            steps[at + n] = marker + rng.normal(scale=0.1, size=4)
    return builders.episode(steps, shown == {0, 1})


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_decides_is_found_next_to_what_no_longer_does(seed):
    """First one of two neighbours is found; then failures have that one, too."""
    learner = new_learner(seed, **OPTIONS | {"diversity_window": 3})
    rng = np.random.default_rng(seed)

    def iterate(failures):
        learner.add(
            [neighbours(rng, {0, 1}) for _ in range(8)],
            [neighbours(rng, failures) for _ in range(8)],
        )
        learner.step()

    def markers():
        """Of every frozen prototype, the marker that it matches better."""
        shown = [builders.episode(marker[None], True) for marker in (OTHER, MARKER)]
        scores = np.stack(episode_scores(learner.model, shown))[:, :, 0]  # [markers, prototypes]
        return {int(scores[:, i].argmax()) for i in np.flatnonzero(learner.met)}

    for _ in range(60):
        iterate(set())
        if learner.met.any():
            break
    for _ in range(OWN_TIME + 1):  # later batches say nothing against it
        iterate(set())
    first = markers()
    assert len(first) == 1
    for _ in range(160):
        iterate(first)
        if len(markers()) == 2:
            return
    raise AssertionError("only the first was found")
