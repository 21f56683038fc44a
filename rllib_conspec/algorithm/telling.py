"""States of a policy's core between episodes and batches, where RLlib's way would not do."""

from __future__ import annotations

from typing import Any

import numpy as np
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.utils.annotations import override

from rllib_conspec.algorithm.policy import LAST


class TellLast(ConnectorV2):
    """Puts what happened last in an episode into the state that the policy goes on from.

    For RLlib's own loop, which plays to evaluate; ours tells it itself (`rollout`).
    """

    @override(ConnectorV2)
    def __call__(self, *, rl_module: Any, batch: Any, episodes: Any, **kwargs: Any) -> Any:
        going_on = {e.id_: e for e in self.single_agent_episode_iterator(episodes) if len(e)}

        def told(state: dict[str, Any], episode_id: str, *_: Any) -> dict[str, Any]:
            if episode_id not in going_on:
                return state
            episode = going_on[episode_id]
            action, reward = episode.get_actions(-1), episode.get_rewards(-1)
            happened = rl_module.unwrapped().happened(np.array([action]), np.array([reward]))
            return state | {LAST: happened[0].cpu().numpy()}

        self.foreach_batch_item_change_in_place(batch, Columns.STATE_IN, told)
        return batch


class BeginAnew(ConnectorV2):
    """Whole episodes begin from the initial state. RLlib would make one for every step of theirs
    first, and the state of a core may be a memory of megabytes.
    """

    @override(ConnectorV2)
    def __call__(self, *, rl_module: Any, batch: Any, episodes: Any, **kwargs: Any) -> Any:
        own = list(self.single_agent_episode_iterator(episodes, agents_that_stepped_only=False))
        policy = rl_module[DEFAULT_MODULE_ID].unwrapped()
        if not policy.is_stateful() or any(Columns.STATE_OUT in e.extra_model_outputs for e in own):
            return batch
        initial = {k: s.numpy()[None] for k, s in policy.get_initial_state().items()}
        for episode in own:
            self.add_n_batch_items(batch, Columns.STATE_IN, initial, 1, episode)
        return batch
