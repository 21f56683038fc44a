"""The learner: gradient steps on windows of recorded episodes, which it reads itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils.annotations import override
from torch import Tensor

from rllib_conspec.algorithm.decision_transformer.windows import (
    ACTIONS,
    LENGTH,
    Windows,
    recorded_episodes,
)
from rllib_conspec.algorithm.learner import RewardModelLearner
from rllib_conspec.algorithm.seeding import derived_seed
from rllib_conspec.networks.decision_transformer import action_loss


class DecisionTransformerLearner(RewardModelLearner):
    """Predicts the actions of recorded steps."""

    @cached_property
    def windows(self) -> Windows:
        config = self.config
        episodes = [packed.unpacked() for packed in recorded_episodes(config.recordings)]
        return Windows(episodes, config.context, config.labels)

    @override(TorchLearner)
    def _create_iterator_if_necessary(self, *, num_iters: int, **kwargs: Any) -> Iterator[Any]:
        """Minibatches for the gradient steps of this update, each drawn when it is its turn.

        What is drawn depends on where training stands alone. Several learners draw different ones.
        """
        number = self._weights_seq_no
        seed = derived_seed(self.config.seed, "windows", number, self._learner_index or 0)
        rng = np.random.default_rng(seed)
        for _ in range(num_iters):
            drawn = self.windows.draw(self.config.windows_per_batch, rng)
            own = SampleBatch({k: torch.from_numpy(v).to(self._device) for k, v in drawn.items()})
            yield MultiAgentBatch({DEFAULT_MODULE_ID: own}, len(own))

    @override(TorchLearner)
    def compute_loss_for_module(self, *, module_id, config, batch, fwd_out) -> Tensor:
        logits, actions = fwd_out[Columns.ACTION_DIST_INPUTS], batch[ACTIONS]
        steps = torch.arange(actions.shape[1], device=actions.device)
        mask = steps < batch[LENGTH][:, None]
        right = (logits.detach().argmax(-1) == actions)[mask].float().mean()
        # Of actions that were drawn evenly no more than one in A can be foretold.
        self.metrics.log_value((module_id, "action_accuracy"), right, window=1)
        return action_loss(logits, actions, mask)

    @override(TorchLearner)
    def configure_optimizers_for_module(self, module_id: str, config=None) -> None:
        parameters = self.get_parameters(self._module[module_id])
        self.register_optimizer(
            module_id=module_id,
            optimizer=torch.optim.AdamW(
                parameters, betas=(0.9, 0.95), weight_decay=config.weight_decay
            ),
            params=parameters,
            lr_or_lr_schedule=config.lr,
        )
