"""How hard the games are for a random policy: exactly, and by playing."""

import numpy as np
import pytest

from rllib_conspec.tasks.keys.layout import CELLS, MOVES, stages
from rllib_conspec.tasks.keys.vector import MultiKeyToDoorVectorEnv


def reach_probability(room, goal, moves):
    """Chance that a random walk from the room's start meets ``goal`` in ``moves`` moves."""
    transition = np.zeros((CELLS, CELLS))
    for cell in range(CELLS):
        for move in MOVES:
            transition[cell, room.step(cell, move)] += 1 / len(MOVES)
    transition[goal] = np.eye(CELLS)[goal]
    where = np.eye(CELLS)[room.start]
    return (where @ np.linalg.matrix_power(transition, moves))[goal]


def exact(keys):
    """Chances to hold key 1, then also key 2, ..., and at last to succeed: ``[keys + 1]``.

    Given that the agent has the key for the door, the door is a gap, so rooms multiply. The step
    that leaves a room does not move, so a key room of n steps has n - 1 moves.
    """
    rooms = [
        reach_probability(s.room, s.room.door, s.steps)
        if s.exit
        else reach_probability(s.room, s.room.key, s.steps - 1)
        for s in stages(keys)
        if not s.waiting
    ]
    return np.cumprod(rooms)


def test_keys_are_as_hard_as_in_the_authors_game():
    key1, key2, key3, key4, _ = exact(4)
    assert 0.33 < key1 < 0.39
    assert 0.04 < key2 < 0.06
    assert 0.011 < key3 < 0.014
    assert 0.0010 < key4 < 0.0016


@pytest.mark.parametrize(
    ("keys", "low", "high"),
    [(1, 0.09, 0.145), (2, 0.012, 0.016), (3, 0.0045, 0.0055), (4, 0.0006, 0.0008)],
)
def test_success_is_as_rare_as_in_the_authors_game(keys, low, high):
    assert low < exact(keys)[-1] < high


def play_randomly(keys, conjunctive, episodes, seed):
    """Play one episode in each of many environments: share that took keys 1..k in order, share
    that succeeded, all in the order of ``exact``."""
    envs = MultiKeyToDoorVectorEnv(episodes, keys=keys, conjunctive=conjunctive, num_apples=0)
    envs.reset(seed=seed)
    rng = np.random.default_rng(seed)
    taken = np.zeros((keys, episodes), bool)
    success = np.zeros(episodes, bool)
    playing = np.ones(episodes, bool)
    for _ in range(envs.max_episode_steps):
        _, _, over, _, infos = envs.step(rng.integers(4, size=episodes))
        for key in range(1, keys + 1):
            taken[key - 1] |= playing & (infos.get("key_taken", 0) == key)
        success |= playing & infos.get("is_success", False)
        playing &= ~over
    assert not playing.any()
    return np.append(np.logical_and.accumulate(taken).mean(axis=1), success.mean())


@pytest.mark.parametrize(("keys", "conjunctive"), [(1, False), (2, False), (4, False), (2, True)])
def test_playing_agrees_with_the_exact_chances(keys, conjunctive):
    episodes = 20_000
    chances = exact(keys)
    deviation = np.sqrt(chances * (1 - chances) / episodes)
    played = play_randomly(keys, conjunctive, episodes, seed=7)
    assert np.all(np.abs(played - chances) < 4 * deviation)


def test_two_fifths_of_the_frames_are_different_and_nearly_all_of_those_have_apples():
    episodes = 32
    envs = MultiKeyToDoorVectorEnv(episodes, keys=2)
    observation, _ = envs.reset(seed=11)
    rng = np.random.default_rng(11)
    frames = [observation]
    for _ in range(envs.max_episode_steps - 1):
        frames.append(envs.step(rng.integers(4, size=episodes))[0])
    frames = np.stack(frames)
    waiting = np.repeat([s.waiting for s in envs.stages], [s.steps for s in envs.stages])
    different = len(np.unique(frames.reshape(-1, 75), axis=0))
    different_in_rooms = len(np.unique(frames[~waiting].reshape(-1, 75), axis=0))
    assert 0.36 < different / (episodes * 125) < 0.44
    assert different_in_rooms < 0.05 * different
