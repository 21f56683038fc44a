"""The program ``orangetree-player``: OrangeTree as an ML-Agents player, like a Unity build.

A trainer starts it with ``--mlagents-port``; a person looks at an episode with ``--play``. It is
also the player that ``rllib_conspec.unity`` starts where no build is named.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence

from rllib_conspec.errors import UserError
from rllib_conspec.tasks.orangetree.layout import VARIANTS
from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv

NAME = "OrangeTree"
# Environment parameters that a trainer may set besides the seed, with the words for their values.
PARAMETERS = {"variant": VARIANTS, "reward": (), "normalize_reward": ()}


def parser() -> argparse.ArgumentParser:
    """The command line; what a Unity build understands besides is accepted."""
    result = argparse.ArgumentParser(
        prog="orangetree-player", description="OrangeTree as an ML-Agents player."
    )
    add = result.add_argument
    add("--mlagents-port", type=int, metavar="PORT", help="where the trainer listens")
    add("--agents", type=int, default=1, metavar="N", help="games played together (1)")
    add("--variant", choices=VARIANTS, default="train", help="colours and rooms (train)")
    add(
        "--observations",
        choices=("float", "png"),
        default="float",
        help="how pictures are sent (float)",
    )
    add(
        "--play",
        choices=("random", "script"),
        nargs="?",
        const="random",
        help="play an episode and write it to a file, without a trainer",
    )
    add("--out", default="episode.gif", metavar="FILE", help="of --play: .gif or .png (a strip)")
    add("--seed", type=int, default=0, help="of --play")
    add("-logFile", metavar="FILE", help="where to write what would go to the terminal")
    add("-nographics", action="store_true", help=argparse.SUPPRESS)
    add("-batchmode", action="store_true", help=argparse.SUPPRESS)
    return result


def make(agents: int, variant: str, parameters: Mapping[str, float]) -> OrangeTreeVectorEnv:
    """The games, as the trainer's parameters want them; ``variant`` unless they say otherwise."""
    number = int(parameters.get("variant", VARIANTS.index(variant)))
    if not 0 <= number < len(VARIANTS):
        raise UserError(f"parameter variant must be 0 to {len(VARIANTS) - 1}, not {number}")
    return OrangeTreeVectorEnv(
        num_envs=agents,
        variant=VARIANTS[number],
        reward=parameters.get("reward", 10.0),
        normalize_reward=bool(parameters.get("normalize_reward", True)),
    )


def serve(arguments: argparse.Namespace) -> None:
    """Play for a trainer until it ends or dies."""
    from rllib_conspec.unity.player.serving import Service

    if arguments.logFile and arguments.logFile != "-":
        log = os.open(arguments.logFile, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
    service = Service(
        lambda parameters: make(arguments.agents, arguments.variant, parameters),
        NAME,
        observations=arguments.observations,
        parameters=PARAMETERS,
    )
    service.run(arguments.mlagents_port)


def main(argv: Sequence[str] | None = None) -> None:
    """The console script."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    command_line = parser()
    arguments = command_line.parse_args(argv)
    try:
        if arguments.play:
            from rllib_conspec.tasks.orangetree.player_play import record

            record(arguments.play, arguments.variant, arguments.seed, arguments.out)
        elif arguments.mlagents_port is None:
            command_line.error("--mlagents-port or --play is needed")
        else:
            serve(arguments)
    except UserError as error:
        sys.exit(f"orangetree-player: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
