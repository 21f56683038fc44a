"""A learner that found one marked step, trained for real on a small problem."""

import numpy as np
import pytest

from rllib_conspec.retrospection.conspec import ConSpecLearner
from rllib_conspec.retrospection.memory import StoredEpisode
from rllib_conspec.retrospection.options import ConSpecOptions

SHAPE = (3, 3, 3)
MARK = np.full(SHAPE, 255, dtype=np.uint8)


def episode(rng: np.random.Generator, success: bool, length: int = 12) -> StoredEpisode:
    """Noise; a success has one white frame, at a random step that is marked as an event."""
    frames = rng.integers(0, 200, (length, *SHAPE), dtype=np.uint8)
    if not success:
        return StoredEpisode.of(frames, False)
    t = int(rng.integers(length))
    frames[t] = MARK
    return StoredEpisode.of(frames, True, [(t, "mark 1")])


@pytest.fixture(scope="session")
def learner() -> ConSpecLearner:
    options = ConSpecOptions(
        num_prototypes=2, encoder_dim=16, projection_dim=16, memory_size=8, memory_batch=8
    )
    learner = ConSpecLearner(options, SHAPE, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(250):
        learner.add([episode(rng, k % 4 == 0) for k in range(8)])
        learner.step()
        if learner.met.any():
            return learner
    raise AssertionError("no prototype found the marked step")
