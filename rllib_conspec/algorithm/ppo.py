"""PPO on batches of whole episodes, with the paper's hyperparameters: the backbone and the
baseline.

An iteration makes one request to the workers and two to the learners: workers get what is new and
give shares of episodes; learners train the policy and answer with its weights, then train the
reward models and answer with a snapshot. Both go to the workers with the next request. While the
reward models learn, workers with cores of their own have the policy's new weights and play on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import ray
from ray.rllib.algorithms.algorithm_config import NotProvided
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    LEARNER_RESULTS,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
)

from rllib_conspec import auxiliary
from rllib_conspec.algorithm.config_episodes import EpisodesConfig
from rllib_conspec.algorithm.driver import OWN_STATE, RewardModelAlgorithm, learner_values
from rllib_conspec.algorithm.entropy import missing
from rllib_conspec.algorithm.env_runner import EpisodeRunner, News
from rllib_conspec.algorithm.learner import WEIGHTS, EpisodePPOLearner
from rllib_conspec.algorithm.lost_learners import LearnersLost
from rllib_conspec.algorithm.packed import packed
from rllib_conspec.algorithm.policy import core_of
from rllib_conspec.algorithm.remote_workers import MOST, RemoteWorkers
from rllib_conspec.algorithm.report import Report
from rllib_conspec.algorithm.stock import Part, Round, Stock
from rllib_conspec.algorithm.threads import cores_to_spare
from rllib_conspec.algorithm.whole_episodes import WholeEpisodes
from rllib_conspec.errors import OptionError
from rllib_conspec.networks.cores import find_core
from rllib_conspec.reward_models.together import pay_alike

# Tags of requests to workers that are not waited for: rounds, and batches that are paid for later.
AHEAD, PLAY = "sample_ahead", "play_ahead"
# The paper's appendix, where no preset says otherwise.
APPENDIX = {
    "lr": 2e-4,
    "clip_param": 0.08,
    "entropy_coeff": 0.02,
    "entropy_fades": False,
    "num_epochs": 4,
    "success": "sparse",
    "reward_scale": 1.0,
    "episodes_per_batch": 16,
    "episodes_per_minibatch": 4,
}
PRESETS = {
    "paper": {
        "learn_without_reward": True,
        "num_env_runners": 2,
        "num_envs_per_env_runner": 8,
        "model": {"encoder_dim": 512, "core_dim": 512},
    },
    "few_successes": {
        "entropy_fades": True,
        "lr": 5e-4,  # the networks are a quarter as wide
        "learn_without_reward": False,
        "num_env_runners": 0,  # one process and one core: run another seed on the other
        "num_envs_per_env_runner": 16,
        "model": {"encoder_dim": 128, "core_dim": 128},
    },
    # Delayed or dense rewards: the best of a batch are its successes.
    "control": {
        "lr": 5e-4,  # this and the next three: what PPO on MuJoCo is commonly run with
        "clip_param": 0.2,
        "entropy_coeff": 0.0,
        "num_epochs": 10,
        "success": "top_k",
        "reward_scale": 0.01,  # running a unit of x is then worth about 1
        "learn_without_reward": True,
        "num_env_runners": 0,
        "num_envs_per_env_runner": 16,
        "model": {"encoder_dim": 64, "core_dim": 0},
    },
    "atari": {
        "success": "top_k",
        "reward_scale": "sign",
        "episodes_per_batch": 8,
        "episodes_per_minibatch": 2,
        "learn_without_reward": True,
        "num_env_runners": 0,
        "num_envs_per_env_runner": 8,
        "model": {"encoder_dim": 256, "core_dim": 0},
    },
}


class WorkersLost(RuntimeError):
    """No rollout worker answered for `worker_timeout_s`."""


class WholeEpisodePPOConfig(EpisodesConfig, PPOConfig):
    """Defaults of the paper's appendix, but for what the preset says; RLlib's differ in every one
    of them.
    """

    has_own_stream = True

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or WholeEpisodePPO)
        self.adam_eps: float = 1e-5
        self.gamma = 0.99
        self.lambda_ = 0.95
        self.vf_loss_coeff = 0.5
        self.vf_clip_param = float("inf")
        self.grad_clip = 0.5
        self.grad_clip_by = "global_norm"
        self.use_kl_loss = False
        # Off: batches without any reward are not learned from. Their advantages are the value
        # function's noise, which PPO scales up to unit size; the policy then drifts at random.
        self.learn_without_reward: bool = True
        # Exploring is worth less, the more often the agent succeeds: a policy that explores all
        # the same takes a wrong turn in one of ten episodes, however well it knows the way.
        self.entropy_fades: bool = False
        self.auxiliary: dict[str, dict[str, Any]] = {}
        self._use_preset(self.preset)

    @override(EpisodesConfig)
    def _use_preset(self, preset: str) -> None:
        super()._use_preset(preset)
        values = APPENDIX | PRESETS[preset]
        self._model_config = {**(self._model_config or {}), **values.pop("model")}
        for name, value in values.items():
            setattr(self, name, value)

    @override(PPOConfig)
    def training(
        self,
        *,
        adam_eps: float = NotProvided,
        learn_without_reward: bool = NotProvided,
        entropy_fades: bool = NotProvided,
        auxiliary: Mapping[str, Mapping[str, Any]] = NotProvided,
        **kwargs: Any,
    ) -> WholeEpisodePPOConfig:
        """PPO's settings, and:

        Args:
            adam_eps: Epsilon of the policy's Adam.
            learn_without_reward: Whether to update the policy on batches in which nothing was paid.
            entropy_fades: Whether `entropy_coeff` counts in the measure that success is missing:
                times 1 minus the mean success of the last 19 iterations, at least times 0.1.
            auxiliary: Losses beside the policy's own, by name or import path, each with options:
                `{"drac": {"coeff": 0.2}}`.
        """
        super().training(**kwargs)
        if adam_eps is not NotProvided:
            self.adam_eps = adam_eps
        if learn_without_reward is not NotProvided:
            self.learn_without_reward = learn_without_reward
        if entropy_fades is not NotProvided:
            self.entropy_fades = entropy_fades
        if auxiliary is not NotProvided:
            self.auxiliary = dict(auxiliary)
        return self

    @override(PPOConfig)
    def validate(self) -> None:
        super().validate()
        shape = self.facts.observation_space.shape
        for name, values in self.auxiliary.items():
            try:
                options = auxiliary.options_of(name, values)
                loss = auxiliary.find_loss(name)
                loss.check(options, shape)
                if (core := loss.needs_core) and core_of(self._model_config) is not find_core(core):
                    raise OptionError(
                        name, f"is for another core: set model_config.core to {core}."
                    )
            except OptionError as error:
                path = error if error.option.startswith(name) else error.within(name)
                raise path.within("auxiliary") from error

    @override(PPOConfig)
    def get_default_learner_class(self) -> type:
        return EpisodePPOLearner


class WholeEpisodePPO(RewardModelAlgorithm, PPO):
    """PPO on whole episodes. Without reward models: what others are compared with."""

    @classmethod
    @override(PPO)
    def get_default_config(cls) -> WholeEpisodePPOConfig:
        return WholeEpisodePPOConfig()

    @override(RewardModelAlgorithm)
    def setup(self, config: Any) -> None:
        self._news: dict[str, News] = {}  # empty: ask the learners
        self._told = 0  # grows over restores too: a worker that outlives one must listen
        self._pays_by: Any = None  # the snapshot that was told last
        super().setup(config)
        self._stock = Stock(self._batches_per_round)
        # The driver sends states of users' connectors, and waits for nobody: only requests of its
        # own are sure to come after them.
        most = math.inf if self.config.own_connectors else MOST
        self._workers = RemoteWorkers(self.env_runner_group, most)
        # Where workers and reward models would share the same cores, nothing is gained.
        workers = self.config.num_env_runners
        waiting = workers > 0 and self._reward_model is not None
        self._plays_ahead = waiting and cores_to_spare(workers) > 0

    @property
    def _plays_rounds(self) -> bool:
        """Whether batches may come that change nothing, and remote workers to play on meanwhile."""
        return bool(self.config.num_env_runners and not self.config.learn_without_reward)

    @property
    def _batches_per_round(self) -> int:
        """How many of its shares a worker has environments for."""
        if not self._plays_rounds:
            return 1
        share = math.ceil(self.config.episodes_per_batch / self.config.num_env_runners)
        return max(1, self.config.num_envs_per_env_runner // share)

    @override(RewardModelAlgorithm)
    def _sample_and_learn(self) -> list[Report]:
        if not self._stock:
            self._sample()
        shares, results, reports = zip(*self._stock.take(), strict=True)
        self.metrics.aggregate(list(results), key=ENV_RUNNER_RESULTS)
        with self._iteration_metrics.timed("rl_update"):
            paid = any(r.any_reward for r in reports)
            if self.config.learn_without_reward or paid:
                self._update(shares, reports)
                self._play_ahead()
        return list(reports)

    def _play_ahead(self) -> None:
        """Have the next batch played, by the new weights, while the reward models learn. It is paid
        for afterwards, by what they have learned, as in Algorithm 1.
        """
        if not self._plays_ahead:
            return
        round_, news = self._stock.ask(self._position), {"weights": self._news["weights"]}
        self._workers.ask(ray.put(partial(_play_for_later, round_=round_, news=news)), PLAY)

    def _sample(self) -> None:
        """Fill the stock with every worker's answer: to the request made ahead, or to a new one.
        Tries again while workers restart, but not for ever.
        """
        deadline = time.monotonic() + self.config.worker_timeout_s
        while not self._stock:
            round_, answers = self._answers()
            self._raise_worker_failure()
            if any(report.sample_seconds for parts in answers for _, _, report in parts):
                self._stock.fill(round_, list(zip(*answers, strict=False)))
            elif time.monotonic() > deadline:
                raise WorkersLost(
                    f"no rollout worker answered for {self.config.worker_timeout_s:.0f} s; "
                    "raise worker_timeout_s if they need longer to restart."
                )
            else:
                time.sleep(1.0)
                self.restore_env_runners(self.env_runner_group)
        if self._plays_rounds and not self._stock.paid:
            self._workers.ask(self._request(self._stock.ask_ahead()), AHEAD)

    def _answers(self) -> tuple[Round, list[list[Part]]]:
        """What was asked for, and every worker's parts of it."""
        limit, local = self.config.sample_timeout_s, self.config.num_env_runners == 0
        self._workers.answers(PLAY, limit)  # or who failed in them
        ahead = []
        for _, (round_, parts) in sorted(self._workers.answers(AHEAD, limit), key=itemgetter(0)):
            if self._stock.wants(round_):
                ahead.append((round_, parts))
            else:  # its episodes are never used, but what befell players did happen
                self._incidents += [line for _, _, report in parts for line in report.incidents]
        answers = ahead
        if not ahead:
            request = self._request(self._stock.ask(self._position))
            answers = (
                [request(self.env_runner)] if local else self._workers.ask_and_wait(request, limit)
            )
        self._incidents += self._workers.take_incidents()
        return answers[0][0] if answers else None, [parts for _, parts in answers]

    def _request(self, round_: Round) -> Any:
        """What is asked of every worker, with what is new to it."""
        if not self._news:
            self._tell_all()
        # Not a function made here: it would be pickled with its code.
        request = partial(_play, round_=round_, news=dict(self._news))
        # Pickled once, not for every worker: Ray gives them what the reference stands for.
        return ray.put(request) if self.config.num_env_runners else request

    def _tell_all(self) -> None:
        """Have said what the learners hold."""
        asked = self.learner_group.foreach_learner(lambda learner: learner.weights())
        self._tell(weights=learner_values(asked)[0])
        self._announce(self._snapshot())

    def _tell(self, **new: Any) -> None:
        """Have this said with the next request; put into the object store once."""
        for name, thing in new.items():
            self._told += 1
            if self.env_runner is not None:
                self.env_runner.hear({name: News(self._told, thing)})
            remote = self.config.num_env_runners
            self._news[name] = News(self._told, ray.put(thing) if remote else thing)

    @override(RewardModelAlgorithm)
    def _announce(self, snapshot: Any) -> None:
        if self._stock.spoilable and not pay_alike(self._pays_by, snapshot):
            self._stock.spoil()
        self._pays_by = snapshot
        if snapshot is not None:
            self._tell(snapshot=snapshot)

    def _update(self, shares: Sequence[Sequence[Any]], reports: Sequence[Report]) -> None:
        data = WholeEpisodes.of(shares, reports)
        if not all(data.steps):  # where workers or environments broke down: a learner has nothing
            return
        fades = self.config.entropy_fades
        results = self.learner_group.update(
            training_data=data,
            timesteps={NUM_ENV_STEPS_SAMPLED_LIFETIME: self._position},
            num_epochs=self.config.num_epochs,
            minibatch_size=data.minibatch_size(self.config.episodes_per_minibatch),
            shuffle_batch_per_epoch=self.config.shuffle_batch_per_epoch,
            return_state=True,
            exploring=missing(self._iteration_metrics.success_before) if fades else 1.0,
        )
        weights = [w for r in results if (w := r.pop(WEIGHTS, None)) is not None]
        if not weights:  # RLlib asks only those that it thinks alive
            raise LearnersLost("no learner answered: their processes have died.")
        self.metrics.aggregate(results, key=LEARNER_RESULTS)
        self._stock.spoil()
        self._tell(weights=weights[0])

    @override(PPO)
    def cleanup(self) -> None:
        self._workers.stop()
        super().cleanup()

    @override(RewardModelAlgorithm)
    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        state = super().get_state(*args, **kwargs)
        state[OWN_STATE]["stock"] = self._stock.get_state()
        return state

    @override(RewardModelAlgorithm)
    def set_state(self, state: dict[str, Any]) -> None:
        self._stock.spoil()  # what was played ahead belongs to another state
        self._news = {}  # what was said before is not true any more
        super().set_state(state)
        self._tell_all()  # at once: the local worker may be asked to evaluate
        if "stock" in state.get(OWN_STATE, {}):
            self._stock.set_state(state[OWN_STATE]["stock"])


def _play(runner: EpisodeRunner, round_: Round, news: Mapping[str, News]) -> Any:
    """The round that was asked for, and this worker's parts of its batches."""
    answer = round_, runner.sample_shares(round_.position, news, round_.batches)
    return packed(answer) if runner.worker_index else answer


def _play_for_later(runner: EpisodeRunner, round_: Round, news: Mapping[str, News]) -> None:
    runner.play_ahead(round_.position, news, round_.batches)
