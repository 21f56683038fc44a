import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_conspec.errors import OptionError
from rllib_conspec.tasks.keys.layout import CELLS, DOWN, UP, stages
from rllib_conspec.tasks.keys.picture import AGENT, APPLE
from rllib_conspec.tasks.keys.script import optimal_actions
from rllib_conspec.tasks.keys.vector import MultiKeyToDoorVectorEnv

ID = "rllib_conspec:MultiKeyToDoor-v0"


def play(actions, **options):
    """Play one environment; returns it with rewards, infos and observations of every step."""
    envs = MultiKeyToDoorVectorEnv(1, **options)
    envs.reset(seed=0)
    steps = [envs.step(np.array([action])) for action in actions]
    infos = [{k: v[0] for k, v in s[-1].items() if k[0] != "_"} for s in steps]
    return envs, [s[1][0] for s in steps], infos, [s[0][0] for s in steps]


def skipping(keys, conjunctive, skipped):
    """The solution, except that one key room is spent idly."""
    actions = optimal_actions(keys, conjunctive)
    begin = 0
    for stage in stages(keys, conjunctive):
        if stage.key == skipped:
            actions[begin : begin + stage.steps] = ([DOWN, UP] * stage.steps)[: stage.steps]
        begin += stage.steps
    return actions


@pytest.mark.parametrize("keys", [1, 2, 3, 4])
@pytest.mark.parametrize("conjunctive", [False, True])
def test_leaving_out_any_key_means_no_reward(keys, conjunctive):
    for skipped in range(1, keys + 1):
        _, rewards, infos, _ = play(
            skipping(keys, conjunctive, skipped), keys=keys, conjunctive=conjunctive
        )
        taken = [info["key_taken"] for info in infos if "key_taken" in info]
        # Sequential: the doors after a missing key stay shut, so later keys are out of reach.
        later = range(skipped + 1, keys + 1) if conjunctive else ()
        assert taken == [*range(1, skipped), *later]
        assert sum(rewards) == 0


def test_a_shut_door_holds_the_agent():
    actions = [DOWN] * 55 + [UP] * 5
    envs, *_ = play(actions, keys=2)
    stage = envs.view(0).stage
    assert stage.name == "key room 2"
    assert envs.view(0).cell == stage.room.door + 5
    assert not envs.view(0).door_open


def test_a_key_is_used_up_by_its_door():
    solution = optimal_actions(2)
    held = [play(solution[:n], keys=2)[0].view(0).held for n in (1, 2, 56, 57, 58)]
    assert held == [(), (1,), (1,), (), (2,)]


def test_an_opened_door_stays_open_until_the_room_is_left():
    through_and_back = [*optimal_actions(2)[:57], DOWN, UP, UP]
    envs, _, infos, observations = play(through_and_back, keys=2, num_apples=0)
    view = envs.view(0)
    assert [info.get("door_opened", 0) for info in infos[-4:]] == [1, 0, 0, 0]
    assert view.cell == view.stage.room.key
    assert view.held == (2,)
    door = divmod(view.stage.room.door, 5)
    assert observations[-1][door].tolist() == observations[-1][4, 4].tolist()


def test_the_last_frame_shows_the_agent_in_the_door():
    envs, _, _, observations = play(optimal_actions(2), keys=2)
    door = divmod(envs.stages[-1].room.door, 5)
    assert tuple(observations[-1][door]) == AGENT


def test_the_step_that_changes_rooms_does_nothing_else():
    solution = optimal_actions(1)
    too_late = [DOWN, UP] * 4 + solution[:2]
    in_time = [DOWN, UP] * 3 + solution[:2]
    assert not any("key_taken" in info for info in play(too_late, keys=1)[2])
    assert "key_taken" in play(in_time, keys=1)[2][-1]


def test_a_finished_game_starts_anew_on_the_next_step():
    envs = gym.make_vec(ID, 2, vectorization_mode="vector_entry_point", keys=1)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    first, _ = envs.reset(seed=0)
    solution = optimal_actions(1)
    for action in solution:
        _, rewards, terminated, _, infos = envs.step(np.array([action, DOWN]))
    assert rewards.tolist() == [1.0, 0.0]
    assert terminated.tolist() == [True, False]
    assert infos["_is_success"].tolist() == [True, False]
    observations, rewards, terminated, _, infos = envs.step(np.array([UP, DOWN]))
    assert np.array_equal(observations[0], first[0])
    assert rewards.tolist() == [0.0, 0.0]
    assert not terminated.any()
    assert infos == {}
    rewards = [envs.step(np.array([action, DOWN]))[1][0] for action in solution]
    assert rewards == [0.0] * (len(solution) - 1) + [1.0]


def test_a_key_is_not_carried_into_the_next_episode():
    takes_then_idles = (optimal_actions(1)[:2] + [DOWN] * 65)[:65]
    idles_then_leaves = [DOWN] * 55 + optimal_actions(1)[55:]
    envs, *_ = play(takes_then_idles, keys=1)
    assert envs.view(0).held == (1,)
    rewards = [envs.step(np.array([a]))[1][0] for a in [UP, *idles_then_leaves]]
    assert envs.view(0).held == ()
    assert sum(rewards) == 0


def test_infos_become_lists_for_rllib():
    envs = DictInfoToList(gym.make_vec(ID, 2, vectorization_mode="vector_entry_point", keys=1))
    assert envs.reset(seed=0)[1] == [{}, {}]
    lists = [envs.step(np.array([action, DOWN]))[-1] for action in optimal_actions(1)]
    happened = [infos for infos in lists if any(infos)]
    assert happened == [
        [{"key_taken": 1}, {}],
        [{"door_opened": 1, "is_success": True}, {}],
    ]


def rollout(envs, seed, steps=80):
    observations = [envs.reset(seed=seed)[0]]
    rng = np.random.default_rng(1)
    for _ in range(steps):
        observations.append(envs.step(rng.integers(4, size=envs.num_envs))[0])
    return np.stack(observations)


def test_seeds_decide_the_apples_and_nothing_else_does():
    envs = MultiKeyToDoorVectorEnv(3, keys=2)
    first = rollout(envs, seed=5)
    assert np.array_equal(first, rollout(envs, seed=5))
    assert np.array_equal(first, rollout(MultiKeyToDoorVectorEnv(3, keys=2), seed=[5, 6, 7]))
    assert not np.array_equal(first, rollout(envs, seed=6))
    assert not np.array_equal(first[15, 0], first[15, 1])


def test_episodes_of_one_seed_have_different_apples():
    envs = MultiKeyToDoorVectorEnv(1, keys=1)
    first, second = rollout(envs, seed=5, steps=20), rollout(envs, seed=None, steps=20)
    assert np.array_equal(first[:10], second[:10])
    assert not np.array_equal(first[10], second[10])


def test_unseeded_games_differ():
    one, other = (rollout(MultiKeyToDoorVectorEnv(1), seed=None, steps=20) for _ in range(2))
    assert not np.array_equal(one[10], other[10])


def test_only_masked_games_are_reset():
    envs = MultiKeyToDoorVectorEnv(2, keys=1)
    envs.reset(seed=0)
    for _ in range(12):
        envs.step(np.array([DOWN, DOWN]))
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert [envs.view(i).step for i in (0, 1)] == [0, 12]
    assert [envs.view(i).stage.name for i in (0, 1)] == ["key room 1", "waiting room 1"]


def test_returned_arrays_are_not_changed_later():
    envs = MultiKeyToDoorVectorEnv(2, keys=1)
    envs.reset(seed=0)
    kept = [envs.step(np.array([UP, DOWN]))[:4] for _ in range(65)]
    copies = [[array.copy() for array in arrays] for arrays in kept]
    assert kept[-1][2].all()
    envs.reset()
    for _ in range(20):
        envs.step(np.array([DOWN, UP]))
    for arrays, expected in zip(kept, copies, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(arrays, expected, strict=True))


@pytest.mark.parametrize("num_apples", [0, 1, 8, 24])
def test_a_waiting_room_always_has_as_many_apples(num_apples):
    envs = MultiKeyToDoorVectorEnv(4, keys=1, num_apples=num_apples)
    observations = rollout(envs, seed=0, steps=54)[10:]
    apples = (observations == APPLE).all(axis=-1).sum(axis=(2, 3))
    assert np.all(apples == num_apples)


@pytest.mark.parametrize(
    ("option", "value"),
    [("keys", 5), ("num_apples", 25), ("num_apples", -1), ("reward", 0), ("num_envs", 0)],
)
def test_impossible_options_name_themselves(option, value):
    with pytest.raises(OptionError) as raised:
        MultiKeyToDoorVectorEnv(**{option: value})
    assert raised.value.option == option


def test_misuse_is_an_error():
    envs = MultiKeyToDoorVectorEnv(2)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.array([0, 0]))
    with pytest.raises(ValueError, match="2 seeds"):
        envs.reset(seed=[1])
    envs.reset(seed=0)
    for wrong in (4, -1):
        with pytest.raises(ValueError, match="actions must be 0 to 3"):
            envs.step(np.array([0, wrong]))


@settings(max_examples=40, deadline=None)
@given(
    keys=st.integers(1, 4),
    conjunctive=st.booleans(),
    data_seed=st.integers(0, 2**32 - 1),
    solved=st.integers(0, 245),
)
def test_rules_hold_for_any_actions(keys, conjunctive, data_seed, solved):
    """Follow the solution for a while, then act at random: reaches every part of the game."""
    envs = MultiKeyToDoorVectorEnv(1, keys=keys, conjunctive=conjunctive)
    limit = envs.max_episode_steps
    schedule = np.repeat(np.arange(len(envs.stages)), [s.steps for s in envs.stages])
    random = np.random.default_rng(data_seed).integers(4, size=limit)
    solution = optimal_actions(keys, conjunctive)[:solved]
    actions = [*solution, *random[len(solution) :]]
    envs.reset(seed=data_seed)
    rewards, taken, before = [], [], envs.view(0)
    for step, action in enumerate(actions, start=1):
        observations, reward, over, _, infos = envs.step(np.array([action]))
        view = envs.view(0)
        rewards.append(reward[0])
        taken += infos.get("key_taken", np.array([], int)).tolist()
        assert view.step == step
        assert view.stage == envs.stages[schedule[min(step, limit - 1)]]
        assert 0 <= view.cell < CELLS
        assert view.cell not in view.stage.room.walls
        assert tuple(observations[0][divmod(view.cell, 5)]) == AGENT
        assert (observations[0] == AGENT).all(axis=-1).sum() == 1
        if view.stage == before.stage:
            assert before.key_lies or not view.key_lies
            assert view.door_open or not before.door_open
        else:
            assert view.held == before.held
        before = view
        if over[0]:
            break
    assert over[0]
    assert sum(rewards[:-1]) == 0
    assert rewards[-1] == infos["is_success"][0] == (rewards[-1] > 0)
    assert taken == sorted(set(taken))
    if rewards[-1]:
        assert taken == list(range(1, keys + 1))
    else:
        assert step == limit
    if not conjunctive:
        assert taken == list(range(1, len(taken) + 1))
