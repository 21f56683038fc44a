"""Surroundings of every test: single-threaded libraries, one local Ray, stable hypothesis."""

import os

# Before torch and ray are imported: they read these once. One thread per process, because the
# tests run several Ray processes on few cores, and because sums then come out the same every time.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MPLBACKEND"] = "Agg"
os.environ["WANDB_MODE"] = "offline"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_DEDUP_LOGS"] = "0"
# Ray otherwise warns that it will stop hiding GPUs from actors that asked for none.
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"

import hypothesis
import pytest

# Ray and torch make single examples slow at unforeseeable moments: no deadline. In CI the examples
# are always the same, so that a red build means a change in the code and not a lucky draw.
hypothesis.settings.register_profile(
    "rllib_conspec",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("rllib_conspec")


@pytest.fixture(scope="session")
def ray_local():
    """A Ray of our own, whatever else runs on this host; shared by all tests that ask for it."""
    import ray

    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
