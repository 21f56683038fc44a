"""The rooms of Multi-key-to-door and the order in which an episode visits them.

A room is a 5x5 text map: ``#`` wall, ``.`` floor, ``A`` where the agent enters, ``k`` key, ``D``
door. Cells are numbered 0..24, row by row.

The maps are chosen so that a random policy meets the difficulty of the authors' game: it takes key
1 in 36 % of episodes, key 2 in 5 %, key 3 in 1.3 %, key 4 in 0.13 %, and succeeds in 1.4 %, 0.5 %
and 0.07 % with 2, 3 and 4 keys. ``tests/tasks/keys/test_difficulty.py`` computes these exactly.
"""

from dataclasses import dataclass, replace
from numbers import Integral

from rllib_conspec.errors import OptionError

SIDE = 5
CELLS = SIDE * SIDE
MAX_KEYS = 4
NOWHERE = -1
UP, DOWN, LEFT, RIGHT = range(4)
MOVES = {UP: (-1, 0), DOWN: (1, 0), LEFT: (0, -1), RIGHT: (0, 1)}

FIRST_ROOM_STEPS = 10
KEY_ROOM_STEPS = 15
WAITING_ROOM_STEPS = 45
EXIT_ROOM_STEPS = 10

KEY_ROOMS = (
    """
    #####
    #...#
    #..k#
    #.A.#
    #...#
    """,
    """
    .....
    ..k..
    ##D##
    .....
    ..A..
    """,
    """
    .....
    .k...
    #D###
    .A...
    .....
    """,
    """
    .....
    ...k.
    ###D#
    .....
    ..A..
    """,
)

WAITING_ROOM = """
    .....
    .....
    ..A..
    .....
    .....
    """

# One exit for each number of keys.
EXIT_ROOMS = (
    """
    ##D##
    #A..#
    #...#
    #####
    #####
    """,
    """
    ##D##
    #..A#
    #...#
    #####
    #####
    """,
    """
    ##D##
    ..A..
    .....
    #####
    #####
    """,
    """
    ##D##
    #.A##
    #..##
    #####
    #####
    """,
)


@dataclass(frozen=True)
class Room:
    """Where things are; ``key`` and ``door`` are ``NOWHERE`` if the room has none."""

    walls: frozenset[int]
    start: int
    key: int = NOWHERE
    door: int = NOWHERE

    @classmethod
    def from_map(cls, text: str) -> "Room":
        cells = "".join(text.split())
        if len(cells) != CELLS:
            raise ValueError(f"a room map has {CELLS} cells, this one has {len(cells)}")
        return cls(
            walls=frozenset(cell for cell, sign in enumerate(cells) if sign == "#"),
            start=cells.index("A"),
            key=cells.find("k"),
            door=cells.find("D"),
        )

    def step(self, cell: int, move: int) -> int:
        """The cell that a move leads to, doors taken as open; walls and edges hold the agent."""
        rows, columns = MOVES[move]
        row, column = cell // SIDE + rows, cell % SIDE + columns
        if not (0 <= row < SIDE and 0 <= column < SIDE):
            return cell
        target = row * SIDE + column
        return cell if target in self.walls else target


@dataclass(frozen=True)
class Stage:
    """One room of the episode and how long the agent is in it.

    ``key`` is the number (1..4) of the key that lies here, 0 if none. ``opened_by`` are the numbers
    of the keys that the door asks for, all of them. ``waiting`` rooms have apples. The door of the
    ``exit`` room ends the episode with success.
    """

    name: str
    room: Room
    steps: int
    key: int = 0
    opened_by: tuple[int, ...] = ()
    waiting: bool = False
    exit: bool = False


def stages(keys: int, conjunctive: bool = False) -> tuple[Stage, ...]:
    """The stages of an episode in order.

    Sequential: the door of each key room opens for the previous key, the last door for the last
    key. Conjunctive: the key rooms have a gap instead of a door, the last door asks for every key.
    """
    if not isinstance(keys, Integral) or not 1 <= keys <= MAX_KEYS:
        raise OptionError("keys", f"must be 1 to {MAX_KEYS}, not {keys!r}")
    order = []
    for key in range(1, keys + 1):
        room = Room.from_map(KEY_ROOMS[key - 1])
        if conjunctive:
            room = replace(room, door=NOWHERE)
        order.append(
            Stage(
                name=f"key room {key}",
                room=room,
                steps=FIRST_ROOM_STEPS if key == 1 else KEY_ROOM_STEPS,
                key=key,
                opened_by=() if room.door == NOWHERE else (key - 1,),
            )
        )
        order.append(
            Stage(
                name=f"waiting room {key}",
                room=Room.from_map(WAITING_ROOM),
                steps=WAITING_ROOM_STEPS,
                waiting=True,
            )
        )
    order.append(
        Stage(
            name="exit",
            room=Room.from_map(EXIT_ROOMS[keys - 1]),
            steps=EXIT_ROOM_STEPS,
            opened_by=tuple(range(1, keys + 1)) if conjunctive else (keys,),
            exit=True,
        )
    )
    return tuple(order)


def episode_steps(order: tuple[Stage, ...]) -> int:
    """Length of an episode that does not leave early: 65, 125, 185, 245 for 1 to 4 keys."""
    return sum(stage.steps for stage in order)
