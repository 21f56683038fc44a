"""Draws docs/images/critical_step.png: an episode of 2 keys, and where prototypes match.

    rllib train -f tuned_examples/keys2.yaml
    python docs/images/make_critical_step.py results/keys2/trial_0/checkpoint_000001

Run it from the repository; drawing takes three seconds. The actions are those of a success that the
checkpoint remembers. They are played again, for the pictures, from a start like its own; only the
apples lie elsewhere. The prototypes score what was played then.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import matplotlib
import numpy as np

from rllib_conspec.episodes import Episode
from rllib_conspec.report.checkpoint import read_models
from rllib_conspec.reward_models.conspec.found import find
from rllib_conspec.reward_models.conspec.learner import ConSpecLearner
from rllib_conspec.reward_models.conspec.scorer import episode_scores

matplotlib.use("Agg")
from matplotlib import pyplot as plt

COLOURS = ("#d9480f", "#1971c2")  # of the prototypes; told apart by place and words, too
GOLD, GREY, INK = "#b08900", "#868e96", "#212529"
HEIGHT = 4.1  # inches, of a picture 8 wide
LEFT, WIDTH = 0.035, 0.172  # margin, and width of a frame
SEEDS = 2000  # starts that are tried
APART = 3  # steps to the first key


@dataclass(frozen=True)
class Shown:
    """One of the pictures above."""

    step: int
    words: str
    colour: str = GREY


@dataclass(frozen=True)
class Played:
    """An episode with the pictures that a person would have seen."""

    episode: Episode
    pictures: list[np.ndarray]  # T, each of what a step led to

    def step_of(self, event: str) -> int:
        return next(t for t, name in self.episode.events if name == event)


def play(remembered: Episode) -> Played:
    """The actions of `remembered` once more, from the first seed that starts like it."""
    env = gym.make("rllib_conspec:MultiKeyToDoor-v0", keys=2, render_mode="rgb_array")
    seed = next(
        seed
        for seed in range(SEEDS)
        if np.array_equal(env.reset(seed=seed)[0], remembered.observations[0])
    )
    observations, rewards, pictures = [env.reset(seed=seed)[0]], [], []
    for action in remembered.actions:
        observation, reward, *_ = env.step(action)
        observations.append(observation)
        rewards.append(reward)
        pictures.append(env.render())
    env.close()
    if rewards[-1] <= 0:
        raise SystemExit("played again, the episode does not succeed")
    events = remembered.events
    arrays = np.array(observations), remembered.actions, np.array(rewards)
    return Played(Episode(*arrays, terminated=True, events=events), pictures)


def draw(played: Played, scores: dict[str, np.ndarray], path: Path) -> None:
    """Scores: event → what the prototype that found it scores at each step, [T]."""
    last = len(played.pictures) - 1
    steps = [played.step_of(event) for event in scores]
    pauses = [(a + b) // 2 for a, b in zip(steps, [*steps[1:], last], strict=True)]
    shown = [
        Shown(steps[0], "takes the yellow key", COLOURS[0]),
        Shown(pauses[0], "waits"),
        Shown(steps[1], "opens a door with it,\ntakes the blue key", COLOURS[1]),
        Shown(pauses[1], "waits"),
        Shown(last, "opens the last door:\nthe only reward", GOLD),
    ]
    figure = plt.figure(figsize=(8, HEIGHT), dpi=200)
    middle = {"x": 0.5, "ha": "center", "va": "top", "color": INK}
    figure.text(
        s=f"The reward comes at step {last}. Two steps, long before it, decided that it came.",
        y=0.985,
        size=12.5,
        weight="bold",
        **middle,
    )
    figure.text(
        s="Nobody says which. ConSpec compares episodes that succeed with episodes that fail, and "
        "learns a prototype of each critical step:",
        y=0.485,
        size=8.5,
        **middle,
    )
    curves = figure.add_axes((LEFT, 0.09, 1 - 2 * LEFT, 0.31))
    draw_scores(curves, scores, steps, last)
    for place, one in enumerate(shown):
        draw_picture(figure, place, one, played.pictures[one.step])
    figure.savefig(path, facecolor="white", pil_kwargs={"optimize": True})
    plt.close(figure)


def draw_picture(figure: plt.Figure, place: int, shown: Shown, picture: np.ndarray) -> None:
    step = WIDTH + (1 - 2 * LEFT - 5 * WIDTH) / 4
    axis = figure.add_axes((LEFT + place * step, 0.565, WIDTH, WIDTH * 0.75 * 8 / HEIGHT))
    axis.imshow(picture, interpolation="antialiased")
    axis.set(xticks=[], yticks=[])
    decides = shown.colour != GREY
    for spine in axis.spines.values():
        spine.set(color=shown.colour, linewidth=3.5 if decides else 1)
    weight = "bold" if decides else "normal"
    axis.set_title(shown.words, size=8.8, color=shown.colour, weight=weight)
    axis.set_xlabel(f"step {shown.step}", size=8, color=shown.colour, weight=weight, labelpad=3)


def draw_scores(axis: plt.Axes, scores: dict[str, np.ndarray], steps: list[int], last: int) -> None:
    axis.plot(last, 0, "*", color=GOLD, markersize=15, clip_on=False, zorder=5)
    axis.text(last - 1, 0.16, "reward 1", color=GOLD, size=9, weight="bold", ha="right")
    for start, end in zip(steps, [*steps[1:], last], strict=True):
        where = ((start + end) / 2 + 1, 0.42)
        axis.text(
            *where, f"{end - start} steps without a reward", color=GREY, size=8.5, ha="center"
        )
    for n, (s, step, colour) in enumerate(zip(scores.values(), steps, COLOURS, strict=True), 1):
        axis.plot(np.maximum(s, 0), color=colour, linewidth=1.8)
        axis.plot(step, s[step], "o", color=colour, markersize=7)
        words = f"prototype {n} matches here: {s[step]:.2f}"
        axis.text(step + 4.5, s[step], words, color=colour, size=9, weight="bold", va="center")
    axis.set(xlim=(-1, last + 1), ylim=(0, 1.1), yticks=[0, 1])
    axis.set_xlabel("step", size=8.5, color=INK, labelpad=-8, x=0.94)
    axis.set_ylabel("match", size=8.5, color=INK, labelpad=-4)
    axis.tick_params(labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def clearest(learner: ConSpecLearner, which: list[int]) -> Episode:
    """Of the successes remembered, the one in which these prototypes match at the fewest steps; not
    one that begins beside the first key.
    """
    won = [e for e in learner.memory.examples(None)[0] if e.events[0][0] >= APART]
    scores = episode_scores(learner.model, won)
    counts = [(s[which] > learner.options.threshold).sum() for s in scores]
    return won[int(np.argmin(counts))]


def main(checkpoint: str) -> None:
    ((_, state),) = read_models(checkpoint)
    learner = ConSpecLearner.from_state(state)
    found = {f.name: f.prototype for f in find(learner) if f.name.startswith("key_taken")}
    played = play(clearest(learner, list(found.values())))
    (s,) = episode_scores(learner.model, [played.episode])
    scores = {name: s[found[name]] for name in sorted(found)}
    target = Path(__file__).with_name("critical_step.png")
    draw(played, scores, target)
    best = {name: (int(x.argmax()), round(float(x.max()), 2)) for name, x in scores.items()}
    print(f"{target.name}: {target.stat().st_size // 1024} KB, best matches {best}")


if __name__ == "__main__":
    main(sys.argv[1])
