"""From the files of a checkpoint to words and pictures, with real models, states and files."""

import numpy as np
import pytest
from PIL import Image
from told import conspec_state, episode, row, write_checkpoint

from rllib_conspec.algorithm.ppo import WholeEpisodePPOConfig
from rllib_conspec.environments import make_single
from rllib_conspec.episodes import Episode
from rllib_conspec.errors import UserError
from rllib_conspec.report.checkpoint import NoRewardModel
from rllib_conspec.report.found import describe_checkpoint

GREEN = np.array([0, 200, 0], dtype=np.uint8)


def told(lines=("found it",), **galleries):
    return {"told:Told": {"lines": lines, "galleries": galleries}}


def green_row():
    return row([episode(np.tile(GREEN, (10, 6, 6, 1)))], [4])


def pixels(path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"))


def test_lines_and_pictures_of_conspec(tmp_path):
    checkpoint = write_checkpoint(tmp_path / "checkpoint", {"conspec": conspec_state()})
    lines, pictures = describe_checkpoint(checkpoint, tmp_path)
    assert len(lines) == 1 and lines[0].startswith("prototype 1: step ")
    assert pictures == [tmp_path / "prototypes.png"]
    assert pixels(pictures[0]).std() > 10


def test_before_anything_is_found(tmp_path):
    state = conspec_state() | {"met": np.zeros(2, dtype=bool)}
    checkpoint = write_checkpoint(tmp_path / "checkpoint", {"conspec": state})
    lines, pictures = describe_checkpoint(checkpoint, tmp_path)
    assert lines[0].startswith("no critical step yet") and not pictures
    assert not list(tmp_path.glob("*.png"))


def test_any_other_model_is_asked_for_its_own(tmp_path):
    models = {"told:Silent": {"anything": 1}} | told(steps=(green_row(),))
    checkpoint = write_checkpoint(tmp_path / "checkpoint", models)
    lines, pictures = describe_checkpoint(checkpoint, tmp_path / "new" / "place")
    assert lines == ["found it"]
    assert pictures == [tmp_path / "new" / "place" / "steps.png"]
    assert (pixels(pictures[0]) == GREEN).all(axis=-1).mean() > 0.01


def test_galleries_of_the_same_name_are_kept_apart(tmp_path):
    models = {"conspec": conspec_state()} | told(prototypes=(green_row(),))
    checkpoint = write_checkpoint(tmp_path / "checkpoint", models)
    _, pictures = describe_checkpoint(checkpoint, tmp_path)
    assert [p.name for p in pictures] == ["prototypes.png", "told_prototypes.png"]
    assert all(p.exists() for p in pictures)


def room(episodes: int = 4, steps: int = 8) -> tuple[WholeEpisodePPOConfig, list[Episode]]:
    """Episodes in which the agent stands still but for the fifth step."""
    config = WholeEpisodePPOConfig().environment("pictured:Room")
    config.validate()
    env = make_single(config.env, config.env_config, config.facts)
    played = []
    actions = np.array([0, 0, 0, 0, 2] + [0] * (steps - 5))
    for seed in range(episodes):
        seen = [env.reset(seed=seed)[0], *(env.step(a)[0] for a in actions)]
        played.append(Episode(np.stack(seen), actions, np.zeros(steps), seed=seed))
    return config, played


def test_vectors_in_words_by_the_names_that_the_environment_gives(tmp_path):
    config, episodes = room()
    models = told(lines=(), steps=(row(episodes, [0] * 4, "start"),))
    checkpoint = write_checkpoint(tmp_path / "checkpoint", models, config)
    lines, _ = describe_checkpoint(checkpoint, tmp_path)
    assert lines == ["start: time is 1 (on average 4.5), place is 0 (on average 1)"]
    unnamed = write_checkpoint(tmp_path / "unnamed", models)
    assert describe_checkpoint(unnamed, tmp_path)[0][0].startswith("start: component 2 is 1 ")


def test_words_about_a_row_continue_its_own_line(tmp_path):
    _, episodes = room()
    rows = (row(episodes, [0] * 4, "step 1"), row(episodes, [7] * 4, "step 7: end"))
    told_lines = ("step 10: late", "step 1: early", "step 7: end (all)")
    models = told(lines=told_lines, steps=rows)
    lines, _ = describe_checkpoint(write_checkpoint(tmp_path / "checkpoint", models), tmp_path)
    assert lines[0] == "step 10: late"
    assert lines[1].startswith("step 1: early; component 2 is 1 (on average 4.5)")
    assert lines[2].startswith("step 7: end (all); component 2 is 8 (on average 4.5)")


def test_the_picture_is_what_the_environment_shows_at_that_step(tmp_path):
    config, episodes = room()
    models = told(steps=(row(episodes, [6] * 4),))
    checkpoint = write_checkpoint(tmp_path / "checkpoint", models, config)
    (path,) = describe_checkpoint(checkpoint, tmp_path)[1]
    drawn = pixels(path)
    env = make_single(config.env, {}, config.facts, render_mode="rgb_array")
    for one in episodes:
        env.reset(seed=one.seed)
        for action in one.actions[:7]:
            env.step(action)
        assert (drawn == env.render()[0, 0]).all(axis=-1).mean() > 0.005


def test_without_its_environment_the_observation_is_shown(tmp_path):
    config, episodes = room()
    config.env = "pictured:Gone"
    checkpoint = write_checkpoint(
        tmp_path / "checkpoint", told(steps=(row(episodes, [6] * 4),)), config
    )
    lines, (path,) = describe_checkpoint(checkpoint, tmp_path)
    assert lines[-1].startswith("steps.png shows observations: OptionError: env: unknown")
    orange = (np.abs(pixels(path).astype(int) - [255, 127, 14]) < 8).all(axis=-1)
    assert orange.mean() > 0.001  # bars


def test_a_model_that_cannot_describe_itself_is_answered_by_one_line(tmp_path):
    checkpoint = write_checkpoint(tmp_path / "checkpoint", {"told:Broken": {}})
    with pytest.raises(UserError, match="broken cannot be described: IndexError: out of range"):
        describe_checkpoint(checkpoint, tmp_path)


def test_a_place_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    checkpoint = write_checkpoint(tmp_path / "checkpoint", told(steps=(green_row(),)))
    with pytest.raises(UserError, match=r"steps\.png: cannot be written"):
        describe_checkpoint(checkpoint, tmp_path / "file")


def test_a_run_without_reward_models(tmp_path):
    checkpoint = write_checkpoint(tmp_path / "checkpoint", {})
    assert describe_checkpoint(checkpoint, tmp_path) == ([], [])
    state = checkpoint / "learner_group" / "learner" / "state.pkl"
    state.write_bytes(b"}.")  # a pickle of {}
    with pytest.raises(NoRewardModel):
        describe_checkpoint(checkpoint, tmp_path)
