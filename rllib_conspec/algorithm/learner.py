"""Learners that hold reward models beside the RL module, and PPO's with auxiliary losses."""

from __future__ import annotations

import copy
import math
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.connectors.learner import GeneralAdvantageEstimation
from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import ALL_MODULES, WEIGHTS_SEQ_NO
from torch import Tensor
from torch.utils._pytree import tree_leaves

from rllib_conspec import auxiliary
from rllib_conspec.algorithm.augmented import Augmented
from rllib_conspec.algorithm.entropy import Fading
from rllib_conspec.algorithm.iteration import BYTES_TO_DEVICE
from rllib_conspec.algorithm.policy import HAPPENED, OUTPUTS, last_of
from rllib_conspec.algorithm.report import Pointer, RewardUpdate, episodes_at
from rllib_conspec.algorithm.seeding import derived_seed, seed_everything
from rllib_conspec.algorithm.shared_parts import average_gradients, begin_equal
from rllib_conspec.algorithm.threads import cores_for, cores_to_spare
from rllib_conspec.algorithm.two_streams import OWN_TARGETS, TwoStreams
from rllib_conspec.auxiliary.base import PolicyBatch
from rllib_conspec.networks.devices import bytes_sent
from rllib_conspec.networks.normalizing import normalizes, observe
from rllib_conspec.networks.optimizers import keeping_settings
from rllib_conspec.networks.side_by_side import cores_at_hand

COMPONENT_REWARD_MODEL = "reward_model"
COMPONENT_AUXILIARY = "auxiliary"
WEIGHTS = "_weights_after_update"


class RewardModelLearner(TorchLearner):
    """A learner that owns reward models as an attribute.

    Not a second RLModule: runners drop modules that they do not act with, and optimizers registered
    with RLlib are zeroed by every RL gradient. The models have optimizers of their own and take
    part in checkpoints as a component.
    """

    reward_model = None

    @override(TorchLearner)
    def build(self) -> None:
        super().build()
        self._reward_lock = threading.Lock()  # an update is whole in every state that is saved
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="reward_model")
        module = self.module[DEFAULT_MODULE_ID]
        self.reward_model = self.config.get_reward_model(
            module.observation_space, module.action_space, self._device
        )

    @property
    def _picture(self) -> int:
        """Numbers in an observation, where rollout workers leave their cores to the learner."""
        config = self.config
        waiting = config.episodes_per_batch is not None and config.num_env_runners
        shape = self.module[DEFAULT_MODULE_ID].observation_space.shape
        return math.prod(shape) if waiting else 0

    @cached_property
    def _spare(self) -> int | None:
        """Cores for the reward models: workers may be playing meanwhile."""
        return cores_to_spare(self.config.num_env_runners) or None

    def weights(self) -> dict[str, Any]:
        """What a rollout worker needs of the policy."""
        name = f"{COMPONENT_RL_MODULE}/{DEFAULT_MODULE_ID}"
        state = self.get_state(components=[name], inference_only=True)
        return {key: state[key] for key in (COMPONENT_RL_MODULE, WEIGHTS_SEQ_NO)}

    def update_reward_model(self, chosen: Sequence[tuple[Any, Pointer]]) -> RewardUpdate:
        """Learn from episodes (fetched here)."""
        start, sent = time.perf_counter(), bytes_sent()
        size = self.reward_model.num_parameters
        cores = cores_for(size, self._picture, most=self._spare)
        with self._reward_lock, cores, cores_at_hand(self._spare or 1):
            metrics = self.reward_model.update(episodes_at(chosen))
            hints, snapshot = self.reward_model.hints(), self.reward_model.snapshot()
        seconds, sent = time.perf_counter() - start, bytes_sent() - sent
        return RewardUpdate(metrics, hints, snapshot, seconds, sent)

    def begin_reward_update(self, chosen: Sequence[tuple[Any, Pointer]]) -> None:
        """The same in a thread of its own, beside whatever this learner does."""
        self._reward_update = self._beside.submit(self.update_reward_model, chosen)

    def reward_update(self) -> RewardUpdate | None:
        """What the thread found; None while it goes on."""
        return self._reward_update.result() if self._reward_update.done() else None

    @override(TorchLearner)
    def _make_batch_if_necessary(self, training_data: TrainingData) -> Any:
        """RLlib's, counted: it is on the device, however it was made."""
        batch = super()._make_batch_if_necessary(training_data)
        for own in batch.policy_batches.values():
            if Columns.SEQ_LENS in own:
                # RLlib reads them one by one for every minibatch: it would wait as often.
                own[Columns.SEQ_LENS] = own[Columns.SEQ_LENS].cpu()
        held = tree_leaves([dict(own) for own in batch.policy_batches.values()])
        sent = sum(t.nbytes for t in held if isinstance(t, Tensor))
        self.metrics.log_value((ALL_MODULES, BYTES_TO_DEVICE), sent, reduce="sum")
        return batch

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
            with self._reward_lock:
                state[COMPONENT_REWARD_MODEL] = self.reward_model.get_state()
        return state

    @override(TorchLearner)
    def _set_optimizer_state(self, state: dict[str, Any]) -> None:
        # A learning rate with a schedule is where the schedule had come to.
        fixed = [o for o, lr in self._optimizer_lr_schedules.items() if not lr.use_schedule]
        with keeping_settings(fixed):
            super()._set_optimizer_state(state)

    @override(TorchLearner)
    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        if self.reward_model is not None and COMPONENT_REWARD_MODEL in state:
            with self._reward_lock:
                self.reward_model.set_state(state[COMPONENT_REWARD_MODEL])


class EpisodePPOLearner(RewardModelLearner, PPOTorchLearner):
    """PPO with the paper's Adam epsilon, auxiliary losses, and reward models if there are any."""

    auxiliary: dict[str, Any] = {}  # name → AuxiliaryLoss

    @override(RewardModelLearner)
    def build(self) -> None:
        super().build()
        if self.config.num_learners > 1:
            begin_equal(self.auxiliary.values())
        own_gamma = self.config.own_gamma
        if own_gamma is not None:
            config = self.config
            self._learner_connector.remove(GeneralAdvantageEstimation)
            self._learner_connector.append(
                TwoStreams(gamma=config.gamma, own_gamma=own_gamma, lambda_=config.lambda_)
            )
        self._entropy = Fading(self.config.entropy_coeff, device=self._device)
        self.entropy_coeff_schedulers_per_module[DEFAULT_MODULE_ID] = self._entropy
        self._augmented = Augmented(list(self.auxiliary.values()), self.config.epsilon)

    @override(PPOTorchLearner)
    def update(
        self, *args: Any, return_state: bool = False, exploring: float = 1.0, **kwargs: Any
    ) -> Any:
        """PPO's, with the entropy's coefficient times `exploring`; with `return_state` the policy's
        weights are part of the answer.
        """
        self._entropy.factor = exploring
        seen = self._seen(kwargs["training_data"])
        self._augmented.begin(self.module[DEFAULT_MODULE_ID].unwrapped())
        with cores_for(observation=self._picture), self._wholly():
            results = super().update(*args, **kwargs)
        if seen is not None:
            observe(self.module[DEFAULT_MODULE_ID].unwrapped(), seen)
        if return_state:
            results[WEIGHTS] = self.weights()
        return results

    @contextmanager
    def _wholly(self) -> Iterator[None]:
        """Take back what was learned if the update breaks off: with several learners it does when
        one of them dies, and the policy after the last whole update is what is to be saved.
        """
        if self.config.num_learners < 2:
            yield
            return
        modules = [self.module[name] for name in self.module.keys()]  # noqa: SIM118
        parts = [*modules, *self._named_optimizers.values(), *self.auxiliary.values()]
        before = copy.deepcopy([part.state_dict() for part in parts])
        try:
            yield
        except Exception:
            for part, state in zip(parts, before, strict=True):
                part.load_state_dict(state)
            raise

    def _seen(self, data: TrainingData) -> Tensor | None:
        """The observations to normalise by after this update, during which the policy has to be
        the one that played. Of several learners the first one's count: torch copies its buffers.
        """
        if not normalizes(self.module[DEFAULT_MODULE_ID].unwrapped()):
            return None
        data.solve_refs()  # now: RLlib adds steps to these episodes
        return torch.from_numpy(np.concatenate([e.get_observations() for e in data.episodes]))

    @override(PPOTorchLearner)
    def _create_iterator_if_necessary(self, **kwargs: Any) -> Any:
        """RLlib's minibatches, of at least one episode each. RLlib measures them in steps: where
        this learner's episodes are longer than the others', it would round one down to none.
        """
        minibatches = super()._create_iterator_if_necessary(**kwargs)
        for own in minibatches._batch.policy_batches.values():
            if Columns.SEQ_LENS in own:
                least = len(own) // len(own[Columns.SEQ_LENS]) + 1
                minibatches._minibatch_size = max(minibatches._minibatch_size, least)
        return minibatches

    @override(PPOTorchLearner)
    def _uncompiled_update(self, batch: dict[str, Any], **kwargs: Any) -> Any:
        changed = {name: self._augmented(own) for name, own in batch.items()}
        return super()._uncompiled_update(changed, **kwargs)

    @override(PPOTorchLearner)
    def compute_loss_for_module(self, *, module_id, config, batch, fwd_out) -> Tensor:
        loss = super().compute_loss_for_module(
            module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
        )
        if OWN_TARGETS in batch:
            loss = loss + self._own_value_loss(module_id, config, batch, fwd_out)
        if not self.auxiliary:
            return loss
        seen = policy_batch(self.module[module_id].unwrapped(), batch, fwd_out)
        for name, extra in self.auxiliary.items():
            value = extra.loss(seen)
            if value is None:
                continue
            loss = loss + value
            for key, shown in {"loss": value.detach(), **extra.metrics()}.items():
                self.metrics.log_value((module_id, f"{name}_{key}"), shown, window=1)
        return loss

    def _own_value_loss(self, module_id: str, config: Any, batch: Any, fwd_out: Any) -> Tensor:
        """Of the second value, as PPO's of the first."""
        values = self.module[module_id].unwrapped().own_values(fwd_out[Columns.EMBEDDINGS])
        errors = (values - batch[OWN_TARGETS]).square()
        mask = batch.get(Columns.LOSS_MASK)
        mean = errors.mean() if mask is None else errors[mask].mean()
        self.metrics.log_value((module_id, "own_vf_loss"), mean.detach(), window=1)
        return config.vf_loss_coeff * mean

    @override(PPOTorchLearner)
    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        gradients = super().compute_gradients(*args, **kwargs)
        if self.config.num_learners < 2:
            return gradients
        average_gradients(self.auxiliary.values())
        return {name: parameter.grad for name, parameter in self._params.items()}

    @override(PPOTorchLearner)
    def apply_gradients(self, gradients_dict: Any) -> None:
        super().apply_gradients(gradients_dict)
        for extra in self.auxiliary.values():
            extra.after_step()

    @override(PPOTorchLearner)
    def configure_optimizers_for_module(self, module_id: str, config=None) -> None:
        module = self._module[module_id]
        self.auxiliary = {
            name: auxiliary.find_loss(name)
            .of(auxiliary.options_of(name, values), module.unwrapped())
            .to(self._device)
            for name, values in config.auxiliary.items()
        }
        parameters = self.get_parameters(module)
        for extra in self.auxiliary.values():
            parameters = [*parameters, *(p for p in extra.parameters() if p.requires_grad)]
        self.register_optimizer(
            module_id=module_id,
            optimizer=torch.optim.Adam(parameters, eps=config.adam_eps),
            params=parameters,
            lr_or_lr_schedule=config.lr,
        )

    @override(RewardModelLearner)
    def get_state(self, components=None, *, not_components=None, **kwargs: Any) -> dict[str, Any]:
        state = super().get_state(components, not_components=not_components, **kwargs)
        if self.auxiliary and self._check_component(
            COMPONENT_AUXILIARY, components, not_components
        ):
            state[COMPONENT_AUXILIARY] = {n: a.state_dict() for n, a in self.auxiliary.items()}
        return state

    @override(RewardModelLearner)
    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        for name, own in state.get(COMPONENT_AUXILIARY, {}).items():
            if name in self.auxiliary:
                self.auxiliary[name].load_state_dict(own)


def policy_batch(module: Any, batch: dict[str, Any], fwd_out: dict[str, Any]) -> PolicyBatch:
    """A minibatch as auxiliary losses see it."""
    actions = module.get_train_action_dist_cls()

    def forward(
        observations: Tensor, rows: Tensor | None = None, by: Any = module
    ) -> tuple[Tensor, Tensor]:
        seen = batch | {Columns.OBS: observations}
        if rows is not None and Columns.STATE_IN in batch:
            seen[Columns.STATE_IN] = {k: s[rows] for k, s in batch[Columns.STATE_IN].items()}
            if module.reads:
                seen[HAPPENED] = batch[HAPPENED][rows]
        out = by.forward_train(seen)
        values = by.compute_values(batch, out[Columns.EMBEDDINGS])
        return out[Columns.ACTION_DIST_INPUTS], values

    def kl(before: Tensor, after: Tensor) -> Tensor:
        return actions.from_logits(before).kl(actions.from_logits(after))

    return PolicyBatch(
        observations=batch[Columns.OBS],
        mask=batch.get(Columns.LOSS_MASK),
        inputs=fwd_out[Columns.ACTION_DIST_INPUTS],
        values=module.compute_values(batch, fwd_out[Columns.EMBEDDINGS]),
        forward=forward,
        kl=kl,
        policy=module,
        outputs=fwd_out.get(OUTPUTS, {}),
        last=last_of(batch) if module.reads else None,
    )


@cache
def with_reward_model_learner(base: type) -> type:
    """`base` (any torch learner class) with reward models."""
    return type(f"RewardModel{base.__name__}", (RewardModelLearner, base), {})
