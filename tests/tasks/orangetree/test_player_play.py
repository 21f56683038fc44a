import numpy as np
import pytest
from PIL import Image

from rllib_conspec.errors import UserError
from rllib_conspec.tasks.orangetree import script
from rllib_conspec.tasks.orangetree.player_play import COLUMNS, GAP, SCALE, record
from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv


def test_a_scripted_episode_as_a_film(tmp_path, capsys):
    path = tmp_path / "episode.gif"
    record("script", "train", 0, str(path))
    said = capsys.readouterr().out
    assert "picked the orange" in said
    steps = int(said.split(": ")[1].split()[0])
    with Image.open(path) as film:
        assert film.n_frames == steps + 1
        assert film.size == (600, 420)


def test_a_strip_shows_every_frame_that_the_agent_sees(tmp_path):
    path = tmp_path / "episode.png"
    record("script", "black", 3, str(path))
    env = OrangeTreeVectorEnv(1, variant="black")
    frames, over = [env.reset(seed=3)[0][0]], False
    while not over:
        observations, _, terminated, *_ = env.step(script.actions(env))
        frames.append(observations[0])
        over = terminated[0]
    strip = np.asarray(Image.open(path))
    side = 84 * SCALE + GAP
    for i, frame in enumerate(frames):
        top, left = i // COLUMNS * side, i % COLUMNS * side
        shown = strip[top : top + 84 * SCALE : SCALE, left : left + 84 * SCALE : SCALE]
        assert np.array_equal(shown, frame)


def test_random_episodes_differ_by_seed(tmp_path, capsys):
    for seed in (0, 1):
        record("random", "train", seed, str(tmp_path / f"{seed}.png"))
    first, second = ((tmp_path / f"{seed}.png").read_bytes() for seed in (0, 1))
    assert first != second
    assert "steps" in capsys.readouterr().out


def test_a_file_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(UserError, match="cannot write"):
        record("random", "train", 0, str(tmp_path / "no" / "such" / "folder.png"))
