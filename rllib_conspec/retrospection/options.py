"""Every option of ConSpec, once: its type, its default, what it means, and what values are
possible.

The defaults are the paper's values for the multi-key-to-door tasks. Options that depart from the
paper are named as such in their help text and default to the paper's behaviour.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, get_type_hints

from rllib_conspec.errors import OptionError, did_you_mean


def option(default: Any, help: str, *, choices: tuple | None = None, **limits: float) -> Any:
    """A dataclass field with its documentation and limits (`above`, `min`, `max`)."""
    return field(default=default, metadata={"help": help, "choices": choices, **limits})


@dataclass(frozen=True)
class ConSpecOptions:
    """The options of ConSpec, every value checked when one is built."""

    # --- prototypes and encoder ---------------------------------------------------------------
    num_prototypes: int = option(8, "H, the number of prototypes", min=1)
    encoder: str = option(
        "conv",
        "f_W, the encoder of single observations: conv (keys), impala (pixels), strided (pixels on "
        "a CPU, not the paper's) or mlp (vectors)",
        choices=("conv", "impala", "strided", "mlp"),
    )
    encoder_dim: int = option(512, "width of the encoder's output z", min=1)
    projection_dim: int = option(
        1010, "width of both layers of the projection g_theta (100 for pixels)", min=1
    )
    projection_relu: str = option(
        "between",
        "where g_theta has its ReLU: between its layers (the paper) or after both (the authors' "
        "code)",
        choices=("between", "both"),
    )
    projection: str = option(
        "per_prototype",
        "one projection per prototype (the authors' code) or one for all (the paper's formula)",
        choices=("per_prototype", "shared"),
    )
    stop_gradient: bool = option(
        False, "ablation: hold the prototype vectors h_i at their random initial values"
    )

    # --- memories -----------------------------------------------------------------------------
    success: str = option(
        "sparse",
        "what counts as success: sparse (any positive return), top_k (the best of a batch), "
        'goal (info["is_success"]) or the import path "package.module:function" of your own',
    )
    success_top_k: int = option(2, "with success top_k: how many of a batch succeed", min=1)
    memory_size: int = option(16, "capacity of the success memory S, in episodes", min=1)
    failure_memory_size: int | None = option(
        None, "capacity of the failure memory F, in episodes (default: memory_size)", min=1
    )
    failure_memory: str = option(
        "fifo",
        "which failures F holds: the newest (fifo, the paper), or a uniform sample of all so far "
        "(reservoir), against which a step stays critical after the policy has learned it",
        choices=("fifo", "reservoir"),
    )
    memory_batch: int = option(16, "successes drawn per gradient step", min=1)
    failure_batch: int | None = option(
        None, "failures drawn per gradient step (default: memory_batch)", min=1
    )
    max_new_successes: int = option(2, "successes that one training batch may add to S", min=1)
    min_successes: int | None = option(
        None, "ConSpec starts to learn when S holds this many (default: memory_size)", min=1
    )

    # --- loss ---------------------------------------------------------------------------------
    top_k: int = option(
        1, "score an episode by the mean of its k best matches (1 is the maximum)", min=1
    )
    failure_share: float = option(
        1.0,
        "share of the failures, those that match a prototype least, that count against it (the "
        "paper: all). A step that some failures contain too can then still be found",
        above=0.0,
        max=1.0,
    )
    diversity: str = option(
        "cosine",
        "D: cosine between the prototypes' match times, or entropy of their sum (Montezuma)",
        choices=("cosine", "entropy"),
    )
    diversity_coeff: float = option(0.2, "alpha, the weight of the diversity term", min=0.0)
    diversity_scaling: str = option(
        "mean",
        "mean: alpha/H times D on S (the paper); sum: that once for every prototype's own "
        "successes, so alpha in effect (the authors' code)",
        choices=("mean", "sum"),
    )
    diversity_moves: str = option(
        "all",
        "prototypes that the diversity term moves: all (the paper), or live, so that a frozen one "
        "stays on the step that it found and others give way",
        choices=("all", "live"),
    )
    diversity_window: int = option(
        0,
        "D and freeze_distinct take match times this many steps apart for the same (the paper: 0, "
        "so that one prototype on a step and one on the next count as different)",
        min=0,
    )
    softmax_scale: float = option(
        100.0, "factor on the scores before the softmax over time in D", above=0.0
    )
    loss_coeff: float = option(1.0, "beta, the scale of the ConSpec loss", above=0.0)
    lr: float = option(2e-3, "learning rate of encoder, projections and prototypes", above=0.0)
    adam_eps: float = option(1e-5, "epsilon of ConSpec's Adam", above=0.0)
    weight_decay: float = option(
        0.0, "decoupled weight decay; the paper has none, 1e-3 hinders memorising", min=0.0
    )
    learn: bool = option(
        True,
        "false: memories and prototypes stay as they were restored and only pay (the few-shot "
        "tests of OrangeTree)",
    )
    steps_per_iteration: int = option(
        1, "contrastive gradient steps per training iteration (the paper: 1)", min=1
    )

    # --- freezing and recruiting --------------------------------------------------------------
    threshold: float = option(
        0.6, "criterion of separation, and the score below which nothing is paid", min=0.0, max=1.0
    )
    freeze: bool = option(True, "ablation when false: no prototype keeps exemplars of its own")
    freeze_after: int = option(
        25, "consecutive gradient steps above the criterion before a prototype freezes", min=1
    )
    frozen_in_turn: bool = option(
        True,
        "with several steps per iteration, a frozen prototype takes part in one of them: it only "
        "has to stay what it is. False: in all, where the encoder would move away under it",
    )
    criterion: str = option(
        "memory",
        "episodes that the criterion looks at: memory (those trained on, the paper) or unseen "
        "(the newest, held out of the memories until newer ones arrive)",
        choices=("memory", "unseen"),
    )
    unseen_successes: int = option(
        4, "with criterion unseen: how many of the newest successes are held out", min=1
    )
    unseen_failures: int = option(
        16, "with criterion unseen: how many of the newest failures are held out", min=1
    )
    unseen_threshold: float = option(
        0.4,
        "with criterion unseen: the separation to exceed. Lower than threshold because failures "
        "that contain an early critical step bound its separation from above",
        min=0.0,
        max=1.0,
    )
    unseen_share: float = option(
        1.0,
        "with criterion unseen: share of the held-out successes that must match above threshold. "
        "Less where a critical step looks different each time",
        above=0.0,
        max=1.0,
    )
    freeze_distinct: bool = option(
        False, "freeze a prototype only if no frozen one matches the same steps already"
    )
    restart_after: int | None = option(
        None,
        "gradient steps after which a live prototype that separates nothing starts anew from "
        "random values (the paper: never)",
        min=1,
    )
    recruit: bool = option(False, "start with few prototypes and add one when all are met")
    recruit_start: int = option(3, "with recruit: how many prototypes to start with", min=1)

    # --- intrinsic reward ---------------------------------------------------------------------
    intrinsic: str = option(
        "window",
        "window (eqn 2) or potential (eqn 3, leaves the optimal policy unchanged)",
        choices=("window", "potential"),
    )
    intrinsic_coeff: float = option(0.2, "lambda, the scale of the intrinsic reward", min=0.0)
    task_reward: float = option(
        1.0, "R_task, the expected nonzero reward of a step (1 after normalisation)", above=0.0
    )
    window: int = option(3, "eqn 2 takes the maximum over this many steps on either side", min=0)
    remove_repeats: bool = option(
        True, "after eqn 2, take 1, 1/2 and 1/4 of the last three payments away (the authors' code)"
    )
    pay_once: bool = option(
        False,
        "with window: pay every prototype only at its best match of an episode (the paper: at "
        "every local best), so that staying where it matches earns nothing more",
    )
    pay: str = option(
        "frozen",
        "which prototypes pay: those that met the criterion (the authors' code) or all (the paper)",
        choices=("frozen", "all"),
    )

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            _check_value(name, value)
        _check_together(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ConSpecOptions:
        """Build from plain values; an unknown name is answered with the nearest known one."""
        names = [f.name for f in fields(cls)]
        for name in values:
            if name not in names:
                raise OptionError(name, "unknown option." + did_you_mean(name, names))
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    # Options whose default is another option's value, resolved.

    @property
    def failures_kept(self) -> int:
        return self.failure_memory_size or self.memory_size

    @property
    def failures_drawn(self) -> int:
        return self.failure_batch or self.memory_batch

    @property
    def successes_needed(self) -> int:
        return self.min_successes or self.memory_size


def _accepted(hint: Any) -> tuple[tuple[type, ...], str]:
    """The Python types that a field's annotation takes, and how to say so."""
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
    args = getattr(hint, "__args__", (hint,))
    types = tuple(t for t in args if t is not type(None))
    said = " or ".join(words[t] for t in types) + (" or null" if type(None) in args else "")
    return tuple(args) + ((int,) if float in args else ()), said


@functools.cache
def _hints() -> dict[str, Any]:
    return get_type_hints(ConSpecOptions)


def _check_value(name: str, value: Any) -> None:
    meta = ConSpecOptions.__dataclass_fields__[name].metadata
    types, said = _accepted(_hints()[name])
    # bool is a subclass of int: "true prototypes" must not pass for one prototype.
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise OptionError(name, f"must be {said}, not {value!r}.")
    if value is None:
        return
    if isinstance(value, float) and not math.isfinite(value):
        raise OptionError(name, f"must be a finite number, not {value}.")
    if meta["choices"] and value not in meta["choices"]:
        choices = ", ".join(meta["choices"])
        raise OptionError(
            name, f"must be one of {choices}, not {value!r}." + did_you_mean(value, meta["choices"])
        )
    for limit, holds, says in (
        ("above", lambda v, x: v > x, "more than"),
        ("min", lambda v, x: v >= x, "at least"),
        ("max", lambda v, x: v <= x, "at most"),
    ):
        if limit in meta and not holds(value, meta[limit]):
            raise OptionError(name, f"must be {says} {meta[limit]}, not {value}.")


def _check_together(o: ConSpecOptions) -> None:
    """Refuse combinations that could never learn."""
    if o.memory_batch > o.memory_size:
        raise OptionError(
            "memory_batch",
            f"is {o.memory_batch}, more than memory_size ({o.memory_size}) can hold.",
        )
    if o.failures_drawn > o.failures_kept:
        raise OptionError(
            "failure_batch",
            f"is {o.failures_drawn}, more than failure_memory_size ({o.failures_kept}) can hold.",
        )
    if o.successes_needed > o.memory_size:
        raise OptionError(
            "min_successes",
            f"is {o.successes_needed}, more than memory_size ({o.memory_size}) can ever hold.",
        )
    if o.recruit and o.recruit_start > o.num_prototypes:
        raise OptionError(
            "recruit_start", f"is {o.recruit_start}, more than num_prototypes ({o.num_prototypes})."
        )
    if o.pay_once and o.intrinsic == "potential":
        raise OptionError("pay_once", "has no meaning with intrinsic potential; use window.")
    if ":" in o.success:
        _check_importable(o.success)
    elif o.success not in (known := ("sparse", "top_k", "goal")):
        raise OptionError(
            "success",
            f"must be sparse, top_k, goal or an import path package.module:function, "
            f"not {o.success!r}." + did_you_mean(o.success, known),
        )


def _check_importable(path: str) -> None:
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever the user's module raises
        raise OptionError("success", f"cannot import {path!r}: {error}.") from None
    if not callable(found):
        raise OptionError("success", f"{path!r} is not a function.")
