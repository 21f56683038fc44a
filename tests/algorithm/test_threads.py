import os

import pytest
import torch

from rllib_conspec.algorithm import threads
from rllib_conspec.algorithm.threads import LARGE, PICTURE, cores_for, cores_to_spare


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_large_model_gets_all_cores_for_the_while(one_thread):
    with cores_for(LARGE):
        assert torch.get_num_threads() == len(os.sched_getaffinity(0))
    assert torch.get_num_threads() == 1


def test_so_do_pictures(one_thread):
    with cores_for(observation=PICTURE):
        assert torch.get_num_threads() == len(os.sched_getaffinity(0))
    assert torch.get_num_threads() == 1


def test_a_small_model_keeps_its_thread(one_thread):
    with cores_for(LARGE - 1, PICTURE - 1):
        assert torch.get_num_threads() == 1


def test_threads_are_given_back_after_an_error(one_thread):
    with pytest.raises(ZeroDivisionError), cores_for(LARGE):
        _ = 1 / 0
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(("machines", "workers", "spare"), [(1, 2, 6), (1, 9, 0), (2, 9, 8)])
def test_workers_on_other_machines_leave_all_cores(monkeypatch, machines, workers, spare):
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: set(range(8)))
    nodes = [{"Alive": True}] * machines + [{"Alive": False}]
    monkeypatch.setattr(threads.ray, "nodes", lambda: nodes)
    monkeypatch.setattr(threads.ray, "is_initialized", lambda: True)
    assert cores_to_spare(workers) == spare


def test_without_ray_there_is_this_machine_alone(monkeypatch):
    monkeypatch.setattr(threads.ray, "is_initialized", lambda: False)
    assert cores_to_spare(0) == len(os.sched_getaffinity(0))


def test_a_part_of_the_cores(one_thread):
    with cores_for(LARGE, most=3):
        assert torch.get_num_threads() == 3
