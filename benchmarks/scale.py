"""What do many workers cost the driver and the learner, besides learning?

1, 4, 16 and 64 workers return recorded episodes instead of playing (`recorded_workers.py`), and a
learner in a process of its own fetches them and does not learn. CPU seconds of an iteration, of the
driver's process, of the learner's, and of those that gather the answers of many workers; and bytes
that go through the driver: requests, answers, what it puts into the object store. Then the
exponents: against the number of episodes, of frames (the length of an episode) and of workers.
First synchronous PPO, then APPO, each with ConSpec whose prototypes all pay.

    python benchmarks/scale.py

`--only ppo` takes one to two minutes and 3 GB; APPO takes longer than 5 minutes on a busy machine.
The aim is that the driver's seconds grow with episodes, and hardly with frames or workers:
`…_frames_exponent:` below 0.1 and `…_64_over_4_workers:` of at most 2. Expect 1.5 to 1.7 for PPO,
with gatherers that take 70 ms beside it, and 25 to 30 % more seconds for 16 times as many episodes.
The learner has to fetch every frame.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from runs import start_ray  # sets the number of threads: before torch

# isort: split
import numpy as np
import ray
from ray.actor import ActorMethod
from ray.rllib.algorithms import algorithm as rllib_algorithm
from recorded_workers import FetchingAPPO, FetchingPPO, Host, RecordedRunner, Room, Seats

from rllib_conspec import ConSpecAPPO, ConSpecConfig

WORKERS, EPISODES, LENGTHS = (1, 4, 16, 64), (64, 256, 1024), (25, 100, 400)
USUAL = {"workers": 16, "episodes": 256, "length": 100}
ITERATIONS = 8
HOSTS = 2
EACH = 4  # episodes in an answer of APPO's workers
CONSPEC = {"encoder": "conv", "encoder_dim": 16, "projection_dim": 16, "num_prototypes": 4}
POLICY = {"encoder": "conv", "encoder_dim": 16, "core_dim": 0}


class Synchronous:
    """ConSpec on PPO: an iteration is a batch."""

    def __init__(self) -> None:
        config = ConSpecConfig().rewards(preset="paper", success="top_k").conspec(**CONSPEC)
        config.environment(Room)
        config.episodes(per_batch=max(EPISODES), per_minibatch=4, max_steps=100)
        config.env_runners(num_env_runners=max(WORKERS), num_envs_per_env_runner=1)
        config.rl_module(model_config=POLICY).learners(learner_class=FetchingPPO)
        self.algorithm = built(config)

    def set(self, workers: int, episodes: int, length: int) -> None:
        set_workers(self.algorithm, workers, length, episodes_per_batch=episodes)

    def iterate(self) -> float:
        """Seconds of the driver."""
        start = time.process_time()
        self.algorithm.train()
        return time.process_time() - start


class Asynchronous:
    """ConSpec on APPO: as many training steps as bring that many episodes. Its driver never waits:
    steps that found nothing to do are left out.
    """

    def __init__(self) -> None:
        config = ConSpecAPPO.get_default_config().rewards(
            models={"conspec": CONSPEC}, success="top_k", episodes_per_update=64
        )
        config.environment(Room).debugging(seed=1)
        config.env_runners(num_env_runners=max(WORKERS), num_envs_per_env_runner=EACH)
        config.env_runners(rollout_fragment_length=100)
        config.rl_module(model_config=POLICY).learners(learner_class=FetchingAPPO)
        config.training(train_batch_size_per_learner=16 * EACH * 100)
        self.algorithm = built(config)
        self._found = 0
        original = self.algorithm._take_reports

        def noting() -> list:
            reports = original()
            self._found = sum(len(report.summaries) for report in reports)
            return reports

        self.algorithm._take_reports = noting

    def set(self, workers: int, episodes: int, length: int) -> None:
        self._episodes = episodes
        set_workers(self.algorithm, workers, length)

    def iterate(self) -> float:
        seconds, episodes = 0.0, 0
        while episodes < self._episodes:
            start = time.process_time()
            self.algorithm.training_step()
            if self._found:
                seconds += time.process_time() - start
                episodes += self._found
            else:
                time.sleep(0.002)
        return seconds


def built(config):
    config.env_runner_cls = RecordedRunner
    config.learners(num_learners=1, num_gpus_per_learner=0).debugging(seed=0)
    with patch.object(rllib_algorithm, "EnvRunnerGroup", Seats):
        algorithm = config.build_algo()
    algorithm.learner_group.foreach_learner(lambda learner: learner.pay())
    return algorithm


def set_workers(algorithm, workers: int, length: int, **settings: int) -> None:
    """How many take part, how long their episodes are, and how many they are asked for."""
    settings = {"num_env_runners": workers} | settings

    def change(runner) -> None:
        runner.length = length
        for name, value in settings.items():
            runner.config.__dict__[name] = value

    algorithm.env_runner_group.use(max(WORKERS))
    algorithm.env_runner_group.foreach_env_runner(change)
    for name, value in settings.items():
        algorithm.config.__dict__[name] = value
    algorithm.env_runner_group.use(workers)


def learner_seconds(algorithm) -> float:
    (answer,) = algorithm.learner_group.foreach_learner(lambda learner: time.process_time())
    return answer.get()


def gatherers_seconds(algorithm) -> float:
    """Of all processes that gather workers' answers for the driver, where there are any."""
    workers = getattr(algorithm, "_workers", None)  # APPO's driver asks for itself
    posts = (workers._posts or []) if workers else []
    asked = [p.gatherer.__ray_call__.remote(lambda own: time.process_time()) for p in posts]
    return sum(ray.get(asked))


@contextmanager
def weighed() -> Iterator[list[int]]:
    """Bytes of all that the driver sends and receives in the block."""
    found: list[int] = []
    weigh = ray._private.worker.global_worker.get_serialization_context().serialize
    get, put, call = ray.get, ray.put, ActorMethod._remote

    def weighing_get(what, **kwargs):
        answer = get(what, **kwargs)
        found.append(weigh(answer).total_bytes)
        return answer

    def weighing_put(thing, **kwargs):
        found.append(weigh(thing).total_bytes)
        return put(thing, **kwargs)

    def weighing_call(self, args=None, kwargs=None, **options):
        found.append(weigh((args, kwargs)).total_bytes)
        return call(self, args, kwargs, **options)

    with (
        patch.object(ray, "get", weighing_get),
        patch.object(ray, "put", weighing_put),
        patch.object(ActorMethod, "_remote", weighing_call),
    ):
        yield found


def measure(side, **setting: int) -> dict[str, float]:
    """Medians of an iteration in this setting."""
    setting = USUAL | setting
    side.set(**setting)
    for _ in range(2):
        side.iterate()
    with weighed() as bytes_:
        side.iterate()
    driver, learner, gatherers = [], [], []
    for _ in range(ITERATIONS):
        before = learner_seconds(side.algorithm), gatherers_seconds(side.algorithm)
        driver.append(side.iterate())
        learner.append(learner_seconds(side.algorithm) - before[0])
        gatherers.append(gatherers_seconds(side.algorithm) - before[1])
    found = {
        "driver_ms": 1e3 * float(np.median(driver)),
        "learner_ms": 1e3 * float(np.median(learner)),
        "gatherers_ms": 1e3 * float(np.median(gatherers)),
        "driver_kb": sum(bytes_) / 1e3,
    }
    shown = ", ".join(f"{name} {value:.1f}" for name, value in found.items())
    print(f"  {setting}: {shown}", flush=True)
    return found


def exponent(x: tuple[int, ...], y: list[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def report(name: str, side) -> None:
    """Print all figures of one algorithm."""
    print(f"{name}:", flush=True)
    grown = {
        "workers": (WORKERS, [measure(side, workers=n) for n in WORKERS]),
        "episodes": (EPISODES, [measure(side, episodes=n) for n in EPISODES]),
        "frames": (LENGTHS, [measure(side, length=n) for n in LENGTHS]),
    }
    for count, found in zip(*grown["workers"], strict=True):
        for figure, value in found.items():
            print(f"{name}_{count}_workers_{figure}: {value:.1f}")
    for what, (x, found) in grown.items():
        for figure in (f for f in found[0] if f != "gatherers_ms"):  # 0 for few workers
            print(f"{name}_{figure}_{what}_exponent: {exponent(x, [f[figure] for f in found]):.2f}")
    driver = dict(zip(WORKERS, (f["driver_ms"] for f in grown["workers"][1]), strict=True))
    print(f"{name}_64_over_4_workers: {driver[64] / driver[4]:.2f}", flush=True)


def main() -> None:
    sides = {"ppo": Synchronous, "appo": Asynchronous}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=sides)
    only = parser.parse_args().only
    start_ray(cpus=2)
    Seats.hosts = [Host.remote() for _ in range(HOSTS)]
    for name, side in sides.items():
        if only in (None, name):
            report(name, side())


if __name__ == "__main__":
    main()
