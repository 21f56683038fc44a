"""Start Ray quietly, with enough CPUs for the trial, or join a running cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from rllib_conspec.cli.running.lean_ray import only_what_is_used
from rllib_conspec.cli.running.process_group import another_process_group
from rllib_conspec.errors import UserError

# One thread per process: with more, a learner update is 4 times slower on 2 cores.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
SETTINGS = {
    # Threads that wait must not spin: rollout workers need the cores.
    "OMP_WAIT_POLICY": "PASSIVE",
    **dict.fromkeys(THREADS, "1"),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    # Tune gives its actors an environment of their own: workers started in advance go unused.
    "RAY_prestart_worker_first_driver": "0",
    # Ray's default of 15 starves the workers when anything else runs on the machine.
    "RAY_worker_niceness": "0",
    # Relative paths in a config mean the directory where the command was given.
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    # A metric may be missing from the first results, before any episode has ended.
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}


def prepare_environment(verbose: int) -> None:
    """Set what libraries read at import; the user's values stay. Call before importing torch."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    if not verbose:
        warnings.filterwarnings("ignore")
        os.environ.setdefault("PYTHONWARNINGS", "ignore")


def quiet_loggers(verbose: int) -> None:
    """Errors of trials are shown by us; the rest of Ray's log only with -v."""
    import ray.rllib  # noqa: F401  (sets its levels when it is imported)

    if not verbose:
        for name in ("ray", "ray.rllib"):
            logging.getLogger(name).setLevel(logging.ERROR)
        logging.getLogger("ray.tune").setLevel(logging.CRITICAL)


def resources_needed(algorithm: type, configs: Iterable[Any]) -> dict[str, float]:
    """The most that one trial of these configs asks of Ray, by resource name."""
    needed: dict[str, float] = {}
    for config in configs:
        request = algorithm.default_resource_request(config.to_dict())
        for name, amount in request.required_resources.items():
            needed[name] = max(needed.get(name, 0.0), amount)
    return needed


def start_ray(
    needed: dict[str, float],
    address: str | None,
    num_cpus: int | None,
    num_gpus: int | None,
    verbose: int,
    say: Callable[[str], None],
) -> None:
    import ray

    cpus_needed = int(-(-needed.get("CPU", 1) // 1))
    if address and (num_cpus is not None or num_gpus is not None):
        raise UserError("--ray-num-cpus and --ray-num-gpus are for a local Ray, not --ray-address.")
    if not address:
        if num_cpus is not None and num_cpus < cpus_needed:
            raise UserError(f"--ray-num-cpus: {num_cpus} given, one trial needs {cpus_needed}.")
        here = len(os.sched_getaffinity(0))
        if num_cpus is None and cpus_needed > here:
            say(f"A trial needs {cpus_needed} CPUs and this machine has {here}: sharing them.")
            num_cpus = cpus_needed
    local = {"include_dashboard": False, "num_cpus": num_cpus, "num_gpus": num_gpus}
    try:
        with contextlib.ExitStack() as local_start:
            if not address:
                local_start.enter_context(another_process_group())
                local_start.enter_context(only_what_is_used(logs=verbose > 0))
            ray.init(
                address=address or "local",
                log_to_driver=verbose > 0,
                logging_level=logging.INFO if verbose else logging.ERROR,
                configure_logging=True,
                **({} if address else local),
            )
    except (ConnectionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"--ray-address: cannot reach {address}: {reason}") from error
    quiet_loggers(verbose)
    if not verbose:
        _leave_out_deaths()
    have = ray.cluster_resources()
    for name, amount in needed.items():
        if amount > have.get(name, 0.0):
            message = f"one trial needs {amount:g} {name}, Ray has {have.get(name, 0.0):g}"
            if not address:
                raise UserError(f"{message}.")
            say(f"Waiting for resources: {message}.")


def _leave_out_deaths() -> None:
    """Keep Ray's paragraph about a worker that died from the terminal: the run says so itself, in
    one line. There is no setting for it, so the function that prints is wrapped.
    """
    from ray._private import worker

    prints = worker.print_to_stdstream

    def without_deaths(data: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        if not any("worker died or was killed" in line for line in data["lines"]):
            prints(data, *args, **kwargs)

    worker.print_to_stdstream = without_deaths
