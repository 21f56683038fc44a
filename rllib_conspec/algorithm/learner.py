"""Learners that hold a reward model beside the RL module."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import ray
import torch
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.utils.annotations import override
from torch import Tensor

from rllib_conspec.algorithm.seeding import derived_seed, seed_everything
from rllib_conspec.algorithm.threads import cores_for
from rllib_conspec.networks.colours import shift_colours

COMPONENT_REWARD_MODEL = "reward_model"


class RewardModelLearner(TorchLearner):
    """A learner that owns a reward model as an attribute.

    Not a second RLModule: runners drop modules that they do not act with, and optimizers registered
    with RLlib are zeroed by every RL gradient. The model has an optimizer of its own and takes part
    in checkpoints as a component.
    """

    reward_model = None

    @override(TorchLearner)
    def build(self) -> None:
        super().build()
        model = self.config.get_reward_model()
        if model is not None:
            self.reward_model = model.learner(
                self.module[DEFAULT_MODULE_ID].observation_space.shape,
                self._device,
                # Equal on all learners, so that their memories and prototypes stay equal.
                derived_seed(self.config.seed, "reward_model"),
            )

    def update_reward_model(self, episodes: Sequence[Any]) -> dict[str, Any]:
        """Add episodes (or references to them, fetched here) and learn. Returns metrics."""
        self.reward_model.add(_fetch(episodes))
        with cores_for(self.reward_model.num_parameters):
            return self.reward_model.step()

    def reward_snapshot(self) -> Any:
        return self.reward_model.snapshot()

    @override(TorchLearner)
    def update(self, *args: Any, **kwargs: Any) -> Any:
        seed_everything(derived_seed(self.config.seed, "learner", self._weights_seq_no))
        return super().update(*args, **kwargs)

    @override(TorchLearner)
    def get_state(self, components=None, *, not_components=None, **kwargs: Any) -> dict[str, Any]:
        state = super().get_state(components, not_components=not_components, **kwargs)
        # Gated, or every weight sync would serialise the memories.
        if self.reward_model is not None and self._check_component(
            COMPONENT_REWARD_MODEL, components, not_components
        ):
            state[COMPONENT_REWARD_MODEL] = self.reward_model.get_state()
        return state

    @override(TorchLearner)
    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        if self.reward_model is not None and COMPONENT_REWARD_MODEL in state:
            self.reward_model.set_state(state[COMPONENT_REWARD_MODEL])


def _fetch(episodes: Sequence[Any]) -> list[Any]:
    """The episodes behind references, without those whose worker died before they were fetched."""
    found = []
    for episode, success in episodes:
        if isinstance(episode, ray.ObjectRef):
            try:
                episode = ray.get(episode).copied()
            except ray.exceptions.ObjectLostError:
                continue
        found.append(episode.judged(success))
    return found


class EpisodePPOLearner(RewardModelLearner, PPOTorchLearner):
    """PPO with the paper's Adam epsilon, and a reward model if the configuration has one."""

    @override(PPOTorchLearner)
    def compute_loss_for_module(self, *, module_id, config, batch, fwd_out) -> Tensor:
        loss = super().compute_loss_for_module(
            module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
        )
        if not config.colour_coeff:
            return loss
        change = colour_loss(self.module[module_id].unwrapped(), batch, fwd_out)
        self.metrics.log_value((module_id, "colour_loss"), change, window=1)
        return loss + config.colour_coeff * change

    @override(PPOTorchLearner)
    def configure_optimizers_for_module(self, module_id: str, config=None) -> None:
        parameters = self.get_parameters(self._module[module_id])
        self.register_optimizer(
            module_id=module_id,
            optimizer=torch.optim.Adam(parameters, eps=config.adam_eps),
            params=parameters,
            lr_or_lr_schedule=config.lr,
        )


def colour_loss(module: Any, batch: dict[str, Any], fwd_out: dict[str, Any]) -> Tensor:
    """How far policy and value change when the pictures are seen in other colours.

    The regulariser of DrAC (Raileanu et al., 2021): what the policy does on the pictures as they
    are is the target, so that the RL gradient itself is not touched.
    """
    shifted = module.forward_train(batch | {Columns.OBS: shift_colours(batch[Columns.OBS])})
    actions = module.get_train_action_dist_cls()
    before = actions.from_logits(fwd_out[Columns.ACTION_DIST_INPUTS].detach())
    after = actions.from_logits(shifted[Columns.ACTION_DIST_INPUTS])
    value = module.compute_values(batch, fwd_out[Columns.EMBEDDINGS]).detach()
    shifted_value = module.compute_values(batch, shifted[Columns.EMBEDDINGS])
    change = before.kl(after) + 0.5 * (value - shifted_value) ** 2
    mask = batch.get(Columns.LOSS_MASK)
    return change.mean() if mask is None else change[mask].mean()


@cache
def with_reward_model_learner(base: type) -> type:
    """`base` (any torch learner class) with a reward model."""
    return type(f"RewardModel{base.__name__}", (RewardModelLearner, base), {})
