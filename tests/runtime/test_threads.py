"""The number of threads is chosen by model and load, and kept where the user has set it."""

import pytest
import torch

from seq2seq_attn.runtime import threads
from seq2seq_attn.runtime.threads import SMALL_MODEL, USER_VARIABLES, choose_threads

NUM_CPUS = 4


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """Four CPUs, torch's default number of threads, and a user who has set none."""
    for name in USER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "affinity", lambda: set(range(NUM_CPUS)))
    monkeypatch.setattr(threads, "num_cores", lambda: NUM_CPUS)
    monkeypatch.setattr(threads, "num_available_cpus", lambda: NUM_CPUS)
    monkeypatch.setattr(threads, "_SAMPLE_S", 0.0)
    monkeypatch.setattr(threads, "_default", 0)
    monkeypatch.setattr(threads, "_last_set", 0)
    number = torch.get_num_threads()
    torch.set_num_threads(NUM_CPUS)
    yield
    torch.set_num_threads(number)


def set_loads(monkeypatch, *loads):
    """The CPUs that other processes use, sample after sample; the last number stays."""
    left = list(loads)
    load_of_others = lambda before, now: left.pop(0) if len(left) > 1 else left[0]  # noqa: E731
    monkeypatch.setattr(threads, "load_of_others", load_of_others)


@pytest.mark.parametrize(
    ("loads", "number"),
    [([0.4], 4), ([0.6], 3), ([2.0], 2), ([9.0], 1), ([3.0, 3.0, 0.1], 4)],
)
def test_a_model_has_a_thread_for_each_free_cpu(monkeypatch, loads, number):
    set_loads(monkeypatch, *loads)
    choose_threads(SMALL_MODEL)
    assert torch.get_num_threads() == number


def test_a_small_model_has_one_thread_and_the_next_model_its_own(
    monkeypatch,
):
    set_loads(monkeypatch, 0.0)
    choose_threads(SMALL_MODEL - 1)
    assert torch.get_num_threads() == 1
    choose_threads(SMALL_MODEL)
    assert torch.get_num_threads() == NUM_CPUS


@pytest.mark.parametrize("name", [*USER_VARIABLES, None])
@pytest.mark.parametrize("num_parameters", [1, SMALL_MODEL])
def test_a_number_that_the_user_has_set_stays(monkeypatch, name, num_parameters):
    set_loads(monkeypatch, 2.0)
    torch.set_num_threads(3)
    if name is not None:
        monkeypatch.setenv(name, "3")
    choose_threads(num_parameters)
    assert torch.get_num_threads() == 3
