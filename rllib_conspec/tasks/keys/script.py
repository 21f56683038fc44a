"""The solution of each game, written down from the layout: for tests and pictures."""

from collections import deque

from rllib_conspec.tasks.keys.layout import DOWN, MOVES, UP, Room, stages


def shortest_path(room: Room, goal: int) -> list[int]:
    """Moves from the room's start to ``goal``, all doors taken as open."""
    paths = {room.start: []}
    queue = deque([room.start])
    while queue:
        cell = queue.popleft()
        if cell == goal:
            return paths[cell]
        for move in MOVES:
            target = room.step(cell, move)
            if target not in paths:
                paths[target] = [*paths[cell], move]
                queue.append(target)
    raise ValueError(f"cell {goal} cannot be reached")


def optimal_actions(keys: int, conjunctive: bool = False) -> list[int]:
    """Take every key, pass the time in between, leave by the last door on the shortest path."""
    actions = []
    for stage in stages(keys, conjunctive):
        if stage.exit:
            return actions + shortest_path(stage.room, stage.room.door)
        path = shortest_path(stage.room, stage.room.key) if stage.key else []
        idle = [DOWN, UP] * stage.steps
        actions += (path + idle)[: stage.steps]
    raise AssertionError("a game ends with an exit")
