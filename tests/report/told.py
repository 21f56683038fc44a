"""A reward model that describes what its state says, and checkpoints with such models in them."""

import pickle
from pathlib import Path

import numpy as np

from rllib_conspec.episodes import Episode
from rllib_conspec.reward_models.base import Description, Moment, RewardModel, Row
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner
from rllib_conspec.reward_models.conspec.options import ConSpecOptions
from rllib_conspec.reward_models.together import FORMAT


class Told(RewardModel):
    """Its state is its description."""

    @classmethod
    def describe(cls, state):
        return Description(state["lines"], state["galleries"])


class Silent(RewardModel):
    """Describes nothing, as models that know no better."""


class Broken(RewardModel):
    @classmethod
    def describe(cls, state):
        raise IndexError("out of range")


def episode(frames: np.ndarray, **values) -> Episode:
    """An episode that leads to these frames [T, *shape]."""
    frames = np.asarray(frames)
    nothing = np.zeros(len(frames))
    observations = np.concatenate([np.zeros_like(frames[:1]), frames])
    return Episode(observations, **{"actions": nothing.astype(int), "rewards": nothing} | values)


def row(episodes, steps, title="row") -> Row:
    moments = zip(episodes, steps, strict=True)
    return Row(title, tuple(Moment(e, t, 0.9 - 0.01 * k) for k, (e, t) in enumerate(moments)))


def conspec_state(shape=(3, 3, 3), met=(1,), episodes=8, **told) -> dict:
    """A learner of which some prototypes pay; where they match, nobody trained them to."""
    rng = np.random.default_rng(0)
    options = ConSpecOptions(num_prototypes=2, encoder_dim=8, projection_dim=8)
    learner = ConSpecLearner(options, shape, seed=0)
    played = [
        episode(f, **told) for f in rng.integers(0, 256, (episodes, 10, *shape), dtype=np.uint8)
    ]
    learner.add(played[: episodes // 2], played[episodes // 2 :])
    learner.met[list(met)] = True
    learner.met_at = dict.fromkeys(met, 1)
    return learner.get_state()


def write_checkpoint(path: Path, models: dict, config=None) -> Path:
    """What RLlib would write of a run with these models (name → state) and this config."""
    directory = path / "learner_group" / "learner"
    directory.mkdir(parents=True)
    state = {"reward_model": {"format": FORMAT, "version": 1, "models": models}}
    (directory / "state.pkl").write_bytes(pickle.dumps(state))
    if config is not None:
        arguments = {
            "class": config.algo_class,
            "ctor_args_and_kwargs": ((config.get_state(),), {}),
        }
        (path / "class_and_ctor_args.pkl").write_bytes(pickle.dumps(arguments))
    return path
