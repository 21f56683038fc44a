"""Surroundings of every test: single-threaded libraries, one local Ray, stable hypothesis, and
which tests stay together when several processes run them.
"""

import os
import signal

# Before torch and ray are imported: they read these once. One thread per process, because the
# tests run several Ray processes on few cores, and because sums then come out the same every time.
os.environ.update(
    {
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "WANDB_MODE": "offline",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        # Ray otherwise warns that it will stop hiding GPUs from actors that asked for none.
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        # Ray's default of 15 starves its workers beside the other processes of these tests.
        "RAY_worker_niceness": "0",
        # Most tests need no worker: one is started when it is asked for.
        "RAY_prestart_worker_first_driver": "0",
    }
)

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

# Scripts start what runs in their background with SIGINT ignored, and children inherit that: the
# Ctrl-C that a test sends to a child would be lost.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Ray and torch make single examples slow at unforeseeable moments: no deadline. In CI the examples
# are always the same, so that a red build means a change in the code and not a lucky draw.
hypothesis.settings.register_profile(
    "rllib_conspec",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("rllib_conspec")

# What shares something expensive: the one real Slurm, or one finished run of `rllib train`.
TOGETHER = ("tests/slurm/", "tests/cli/")
# What takes long begins first; the many short files then fill up whoever has less to do.
LONG = (*TOGETHER, "tests/algorithm/", "tests/docs/")


def pytest_collection_modifyitems(items):
    def place(item):
        found = (n for n, folder in enumerate(LONG) if item.nodeid.startswith(folder))
        return next(found, len(LONG))

    items.sort(key=place)


def pytest_xdist_make_scheduler(config, log):
    config.option.loadscopereorder = False  # the order above
    return ByWhatTheyShare(config, log)


class ByWhatTheyShare(LoadScopeScheduling):
    """Tests of a file run in one process, in their order: many build on those before them."""

    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        return next((folder for folder in TOGETHER if file.startswith(folder)), file)


@pytest.fixture(scope="session")
def ray_local():
    """A Ray of our own, whatever else runs on this host; shared by all tests that ask for it."""
    import ray

    from rllib_conspec.cli.running.lean_ray import only_what_is_used

    for left in (2, 1, 0):
        try:
            with only_what_is_used(logs=False):
                ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
            break
        except Exception as error:
            # Ray gives its node 30 seconds, which a loaded machine may exceed; there is no option.
            if "timed out during startup" not in str(error) or not left:
                raise
    yield
    ray.shutdown()
