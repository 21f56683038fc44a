"""Every option of ConSpec, once: its type, its default, what it means, and what values are
possible.

The defaults are the paper's values for the multi-key-to-door tasks: the preset `paper`. Options
that depart from the paper are named as such in their help text. The preset `few_successes`, which
an experiment gets that names none, learns from a handful of successes with small networks;
`control` and `atari` are for the tasks of these names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rllib_conspec.errors import OptionError
from rllib_conspec.options import Options, option


@dataclass(frozen=True)
class ConSpecOptions(Options):
    """The options of ConSpec, every value checked when one is built."""

    # --- prototypes and encoder ---------------------------------------------------------------
    num_prototypes: int = option(8, "H, the number of prototypes", min=1)
    form: str = option(
        "mixed",
        "where the paper's text and the authors' code differ. paper: one projection for all "
        "prototypes, repeats are paid, prototypes pay from the start. code: a projection for each, "
        "with a ReLU after both of its layers, repeats are taken away (1, 1/2 and 1/4 of the last "
        "three payments), D once for every prototype, so alpha instead of alpha/H, only prototypes "
        "that met the criterion pay. mixed: the code's, but the ReLU and D as in the paper",
        choices=("mixed", "paper", "code"),
    )
    encoder: str = option(
        "auto",
        "f_W, the encoder of single observations: conv (small pictures), impala (pixels), strided "
        "(pixels on a CPU, not the paper's), mlp (vectors), or auto: mlp, conv or strided by the "
        "observations' shape",
        choices=("auto", "conv", "impala", "strided", "mlp"),
    )
    encoder_dim: int = option(512, "width of the encoder's output z", min=1)
    projection_dim: int = option(
        1010, "width of both layers of the projection g_theta (100 for pixels)", min=1
    )
    stop_gradient: bool = option(
        False, "ablation: hold the prototype vectors h_i at their random initial values"
    )

    # --- memories -----------------------------------------------------------------------------
    memory: str = option(
        "newest",
        "what successes are compared with. newest (the paper): S and F hold the newest successes "
        "and failures. ages: every success with a failure of its own training batch, from a sample "
        "of all batches so far; the newest batches are held back, and prototypes are judged on "
        "them",
        choices=("newest", "ages"),
    )
    memory_size: int = option(
        16,
        "capacity of the memories S and F, in episodes each (memory ages: of both together, twice "
        "as many)",
        min=1,
    )
    memory_batch: int = option(
        16, "successes, and as many failures, that gradient steps draw", min=1
    )
    max_new_successes: int = option(
        2,
        "successes that one training batch may add to S; with success top_k, how many of a batch "
        "succeed",
        min=1,
    )
    min_successes: int | None = option(
        None, "ConSpec starts to learn when S holds this many (default: memory_size)", min=1
    )

    demonstrations: str | None = option(
        None,
        "file of recorded episodes (`rllib record`) that S starts from: ConSpec can learn before "
        "the agent has succeeded",
    )
    num_demonstrations: int | None = option(
        None, "how many of them, the first ones (default: all)", min=1
    )

    # --- loss ---------------------------------------------------------------------------------
    top_k: int = option(
        1, "score an episode by the mean of its k best matches (1 is the maximum)", min=1
    )
    failure_coeff: float = option(
        1.0,
        "weight of the failures in the loss (the paper: 1). With more, a prototype that tells "
        "nothing rests at a score of 0; with 1 it may drift to 1, where a cosine has no slope",
        above=0.0,
    )
    diversity: str = option(
        "cosine",
        "D: cosine between the prototypes' match times, or entropy of their sum (Montezuma)",
        choices=("cosine", "entropy"),
    )
    diversity_coeff: float = option(0.2, "alpha, the weight of the diversity term", min=0.0)
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
    lr: float = option(2e-3, "learning rate of encoder, projections and prototypes", above=0.0)
    weight_decay: float = option(
        0.0, "decoupled weight decay; the paper has none, 1e-3 hinders memorising", min=0.0
    )
    learn: bool = option(
        True,
        "false: memories and prototypes stay as they were restored and only pay (the few-shot "
        "tests of OrangeTree)",
    )
    recolour: bool = option(
        False,
        "with learn false, for pictures: prototypes learn to match pictures in other colours as "
        "they match them as they are (OrangeTree in any colours); not the paper's",
    )
    steps_per_iteration: int = option(
        1,
        "contrastive gradient steps per training iteration, on one draw of episodes (the paper: "
        "1). Several look only at frames that some prototype matched best before the first",
        min=1,
    )

    # --- freezing and recruiting --------------------------------------------------------------
    threshold: float = option(
        0.6, "criterion of separation, and the score below which nothing is paid", min=0.0, max=1.0
    )
    freeze: bool = option(True, "ablation when false: no prototype keeps exemplars of its own")
    freeze_after: int = option(
        25, "consecutive gradient steps above the criterion before a prototype freezes", min=1
    )
    freeze_distinct: bool = option(
        False, "freeze a prototype only if no frozen one matches the same steps already"
    )
    recruit_start: int | None = option(
        None,
        "start with this many prototypes and add one whenever all have met the criterion, up to "
        "num_prototypes (default: start with all)",
        min=1,
    )

    # --- intrinsic reward ---------------------------------------------------------------------
    intrinsic: str = option(
        "window",
        "window (eqn 2) or potential (eqn 3, leaves the optimal policy unchanged)",
        choices=("window", "potential"),
    )
    intrinsic_coeff: float = option(0.2, "lambda, the scale of the intrinsic reward", min=0.0)
    window: int = option(3, "eqn 2 takes the maximum over this many steps on either side", min=0)
    pay_once: bool = option(
        False,
        "with intrinsic window: pay every prototype only at its best match of an episode (the "
        "paper: at every local best), so that staying where it matches, or coming back, earns "
        "nothing more",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.demonstrations is not None:  # processes of one run work in several directories
            full = str(Path(self.demonstrations).expanduser().absolute())
            object.__setattr__(self, "demonstrations", full)
        _check_together(self)

    # An option whose default is another option's value, resolved.

    @property
    def successes_needed(self) -> int:
        return self.min_successes or self.memory_size


def _check_together(o: ConSpecOptions) -> None:
    """Refuse combinations that could never learn."""
    if o.memory_batch > o.memory_size:
        raise OptionError(
            "memory_batch",
            f"is {o.memory_batch}, more than memory_size ({o.memory_size}) can hold.",
        )
    if o.successes_needed > o.memory_size:
        raise OptionError(
            "min_successes",
            f"is {o.successes_needed}, more than memory_size ({o.memory_size}) can ever hold.",
        )
    if o.recolour and o.learn:
        raise OptionError("recolour", "is for prototypes that have learned: set learn to false.")
    if o.recruit_start is not None and o.recruit_start > o.num_prototypes:
        raise OptionError(
            "recruit_start", f"is {o.recruit_start}, more than num_prototypes ({o.num_prototypes})."
        )


PRESETS = {
    "paper": {},
    # Each of them is measured in docs/keys.md or docs/orangetree.md.
    "few_successes": {
        "projection_dim": 100,
        "encoder_dim": 128,
        "weight_decay": 0.001,
        "memory": "ages",  # a success is compared with failures of its own time
        "memory_size": 512,
        "memory_batch": 32,
        "max_new_successes": 16,
        "min_successes": 4,  # start before S is full
        "threshold": 0.5,
        "failure_coeff": 1.3,
        "diversity_coeff": 0.1,  # of twice as many episodes
        "freeze_after": 12,
        "steps_per_iteration": 4,
        "freeze_distinct": True,
        "diversity_moves": "live",
        "diversity_window": 3,  # a prototype on a step and one on the next are one too many
        "pay_once": True,  # or a policy may live on taking a key, dropping it and taking it again
    },
    # The paper's choices for these tasks, with networks of the policy's size.
    "control": {
        "encoder_dim": 64,
        "projection_dim": 100,
        "recruit_start": 3,
        "top_k": 20,
        "steps_per_iteration": 4,
    },
    "atari": {
        "num_prototypes": 3,
        "encoder_dim": 256,
        "projection_dim": 100,
        "memory_batch": 4,
        "top_k": 20,
        "intrinsic_coeff": 0.5,
    },
}
