"""Small models, random episodes, and episodes in which one step decides the return."""

import pickle
from dataclasses import fields, is_dataclass

import numpy as np
import torch
from gymnasium import spaces

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models import find_model, options_of
from rllib_conspec.reward_models.base import Setting

VECTORS = spaces.Box(-np.inf, np.inf, (3,), np.float32)
PICTURES = spaces.Box(0, 255, (4, 3, 2), np.uint8)
ACTIONS = spaces.Discrete(3)
FORCES = spaces.Box(-1, 1, (2,), np.float32)
SMALL = {"encoder_dim": 6, "dim": 5, "lr": 0.01}


def model(name, space=VECTORS, *, actions=ACTIONS, seed=0, reward_scale=1.0, **options):
    """In a small size; vectors have no known range."""
    pictures = space is PICTURES
    setting = Setting(
        space,
        actions,
        observation_range=255.0 if pictures else 1.0,
        normalize=not pictures,
        reward_scale=reward_scale,
        seed=seed,
    )
    return find_model(name)(options_of(name, SMALL | options), setting)


def random_episodes(rng, space=VECTORS, *, actions=ACTIONS, count=4, longest=7) -> list[Episode]:
    """Of unequal lengths; frames of a small pool, so that many are equal; rewards at any step."""
    if space is PICTURES:
        pool = rng.integers(0, 256, (6, *space.shape), dtype=np.uint8)
    else:
        pool = rng.normal(3.0, 2.0, (6, *space.shape)).astype(np.float32)
    episodes = []
    for n in rng.integers(1, longest + 1, count):
        discrete = isinstance(actions, spaces.Discrete)
        chosen = rng.integers(3, size=n) if discrete else rng.normal(size=(n, 2))
        rewards = rng.normal(size=n) * (rng.random(n) < 0.5)
        episodes.append(
            Episode(
                pool[rng.integers(len(pool), size=n + 1)],
                chosen if discrete else chosen.astype(np.float32),
                rewards.astype(np.float32),
            )
        )
    return episodes


def planted_episode(rng, marked: bool) -> Episode:
    """8 to 19 steps of noise, at one of which, if `marked`, a light goes on; the last step is paid
    for it. Every last frame looks the same: without the light, it tells nothing.
    """
    steps = int(rng.integers(8, 20))
    frames = np.full((steps + 1, *PICTURES.shape), 7, np.uint8)
    frames[1:-1, :, :, 0] = rng.integers(0, 60, (steps - 1, *PICTURES.shape[:2]))
    frames[-1, 3] = 200
    rewards = np.zeros(steps, np.float32)
    light = int(rng.integers(1, steps - 3))
    if marked:
        frames[light + 1, 1, 1, 1] = 255
        rewards[-1] = 1.0
    events = ((light, "light"),) if marked else ()
    return Episode(frames, rng.integers(3, size=steps), rewards, success=marked, events=events)


def planted_batch(rng, count=16) -> list[Episode]:
    """Three of ten are paid."""
    return [planted_episode(rng, bool(rng.random() < 0.3)) for _ in range(count)]


def light_of(episode) -> int:
    ((step, _),) = episode.events
    return step


def learn(own, episodes):
    return own.update([(None, e) for e in episodes])


def trained(own, batches=3, seed=1, space=VECTORS, **kwargs):
    rng = np.random.default_rng(seed)
    for _ in range(batches):
        learn(own, random_episodes(rng, space, **kwargs))
    return own


def worker(own):
    """A worker's model with the learner's snapshot as it arrives: in arrays that are read-only."""
    snapshot = pickle.loads(pickle.dumps(own.snapshot()))
    for array in (snapshot["networks"] or {}).values():
        array.flags.writeable = False
    other = type(own)(own.options, own.setting)
    other.load(snapshot)
    return other


def flat(value, path=""):
    """Every leaf of a state by its path, in a form that compares by value."""
    if is_dataclass(value):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, dict):
        found = [flat(v, f"{path}/{k}") for k, v in value.items()]
        return {k: v for part in found for k, v in part.items()}
    if isinstance(value, (list, tuple)):
        return flat(dict(enumerate(value)), path)
    if isinstance(value, torch.Tensor):
        value = value.numpy()
    return {path: value.tobytes() if isinstance(value, np.ndarray) else repr(value)}
