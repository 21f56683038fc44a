"""Who may pay the agent. A new model is one file and one line here; an import path works too."""

from rllib_conspec.registry import Registry
from rllib_conspec.reward_models.base import RewardModel

REGISTRY = Registry(
    "reward model",
    RewardModel,
    {
        "conspec": "rllib_conspec.reward_models.conspec.model:ConSpecModel",
        "rnd": "rllib_conspec.reward_models.rnd:RND",
        "rrd": "rllib_conspec.reward_models.rrd:RRD",
        "rudder": "rllib_conspec.reward_models.rudder:Rudder",
        "synthrs": "rllib_conspec.reward_models.synthetic_returns:SynthRs",
        "tvt": "rllib_conspec.reward_models.tvt:TVT",
    },
)
find_model = REGISTRY.find
options_of = REGISTRY.options_of
