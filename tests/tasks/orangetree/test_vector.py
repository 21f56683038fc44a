import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList

from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.orangetree import script
from rllib_conspec.tasks.orangetree.layout import FORWARD, TURN_LEFT, TURN_RIGHT
from rllib_conspec.tasks.orangetree.vector import OrangeTreeVectorEnv

ID = "rllib_conspec:OrangeTree-v0"


def rollout(envs, seed, steps=70, actions_seed=1):
    """Observations ``[steps + 1, n, ...]``; game i gets the same actions whatever n is."""
    observations = [envs.reset(seed=seed)[0]]
    actions = np.random.default_rng(actions_seed).choice(4, size=(8, steps), p=(0.5, 0.1, 0.2, 0.2))
    for t in range(steps):
        observations.append(envs.step(actions[: envs.num_envs, t])[0])
    return np.stack(observations)


@pytest.mark.parametrize("variant", ["train", "random"])
def test_seeds_decide_everything(variant):
    envs = OrangeTreeVectorEnv(2, variant=variant)
    first = rollout(envs, seed=5)
    assert np.array_equal(first, rollout(envs, seed=5))
    assert np.array_equal(first, rollout(OrangeTreeVectorEnv(2, variant=variant), seed=[5, 6]))
    other = rollout(envs, seed=7)
    # Objects, apples and tree: every stage looks different under another seed.
    for t in (0, 15, 55):
        assert not np.array_equal(first[t], other[t])
        assert not np.array_equal(first[t, 0], first[t, 1])


@pytest.mark.parametrize("variant", ["train", "random"])
def test_a_game_does_not_depend_on_how_many_there_are(variant):
    few, many = (
        rollout(OrangeTreeVectorEnv(n, variant=variant), seed=11, steps=140) for n in (1, 4)
    )
    assert np.array_equal(few[:, 0], many[:, 0])


def test_episodes_of_one_seed_differ_and_unseeded_games_too():
    envs = OrangeTreeVectorEnv(1)
    first, second = rollout(envs, 5, steps=1)[0], rollout(envs, None, steps=1)[0]
    assert not np.array_equal(first, second)
    one, other = (OrangeTreeVectorEnv(1).reset()[0] for _ in range(2))
    assert not np.array_equal(one, other)


def test_the_waiting_room_does_not_show_what_is_carried():
    """A game with the flat object, one with the other and one with nothing look the same."""
    envs = OrangeTreeVectorEnv(3)
    envs.reset(seed=[8, 8, 8])
    rng = np.random.default_rng(0)
    for t in range(54):
        if t < 15:
            views = [envs.view(i) for i in range(3)]
            actions = [script.action(views[0]), script.action(views[1], flat=False), TURN_LEFT]
        else:
            actions = [rng.choice(4, p=(0.4, 0.1, 0.25, 0.25))] * 3
        observations, *_ = envs.step(np.array(actions))
        if t >= 14:
            assert envs.view(0).stage.name == "waiting room"
            assert (observations == observations[0]).all()
    assert len({envs.view(i).carried for i in range(3)}) == 3
    observations, *_ = envs.step(np.array([FORWARD] * 3))
    assert len({observation.tobytes() for observation in observations}) == 3


def test_a_finished_game_starts_anew_on_the_next_step():
    envs = gym.make_vec(ID, 2, vectorization_mode="vector_entry_point")
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert envs.unwrapped.critical_events == ("flat_taken", "orange_picked")
    assert envs.unwrapped.max_episode_steps == 65
    envs.reset(seed=0)
    terminated = np.zeros(2, bool)
    while not terminated.any():
        actions = [script.action(envs.unwrapped.view(0)), TURN_RIGHT]
        _, rewards, terminated, truncated, infos = envs.step(np.array(actions))
    assert rewards.tolist() == [1.0, 0.0]
    assert terminated.tolist() == [True, False] and not truncated.any()
    assert infos["orange_picked"].tolist() == [1, 0]
    assert infos["_orange_picked"].tolist() == infos["_is_success"].tolist() == [True, False]
    step = envs.unwrapped.view(1).step
    _, rewards, terminated, _, infos = envs.step(np.array([FORWARD, TURN_RIGHT]))
    assert rewards.tolist() == [0.0, 0.0] and not terminated.any() and infos == {}
    assert [envs.unwrapped.view(i).step for i in (0, 1)] == [0, step + 1]
    assert envs.unwrapped.view(0).carried is None and not envs.unwrapped.view(0).raised


def test_infos_become_lists_for_rllib():
    envs = DictInfoToList(gym.make_vec(ID, 2, vectorization_mode="vector_entry_point"))
    assert envs.reset(seed=0)[1] == [{}, {}]
    lists = []
    while not lists or "is_success" not in lists[-1][0]:
        actions = [script.action(envs.unwrapped.view(0)), TURN_LEFT]
        lists.append(envs.step(np.array(actions))[-1])
    first = [infos[0] for infos in lists if set(infos[0]) - {"apple_taken"}]
    assert first == [{"flat_taken": 1}, {"orange_picked": 1, "is_success": True}]
    assert all(set(infos[1]) <= {"apple_taken"} for infos in lists)


def test_only_masked_games_are_reset():
    envs = OrangeTreeVectorEnv(2)
    envs.reset(seed=0)
    for _ in range(16):
        envs.step(np.array([TURN_LEFT, TURN_LEFT]))
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert [envs.view(i).step for i in (0, 1)] == [0, 16]
    assert [envs.view(i).stage.name for i in (0, 1)] == ["object room", "waiting room"]


def test_returned_arrays_are_not_changed_later():
    envs = OrangeTreeVectorEnv(2)
    envs.reset(seed=0)
    kept, copies = [], []
    for _ in range(75):
        *arrays, infos = envs.step(script.actions(envs))
        kept.append([*arrays, *infos.values()])
        copies.append([array.copy() for array in kept[-1]])
    envs.reset()
    envs.step(np.array([0, 1]))
    for arrays, expected in zip(kept, copies, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(arrays, expected, strict=True))


@pytest.mark.parametrize(
    ("option", "value"),
    [("variant", "blue"), ("reward", 0), ("num_envs", 0), ("render_mode", "ansi")],
)
def test_impossible_options_name_themselves(option, value):
    with pytest.raises(OptionError) as raised:
        OrangeTreeVectorEnv(**{option: value})
    assert raised.value.option == option


def test_misuse_is_an_error():
    envs = OrangeTreeVectorEnv(2)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.array([0, 0]))
    with pytest.raises(ValueError, match="2 seeds"):
        envs.reset(seed=[1])
    envs.reset(seed=0)
    for wrong in (4, -1):
        with pytest.raises(ValueError, match="actions must be 0 to 3"):
            envs.step(np.array([0, wrong]))
