"""The number of threads of a training run: chosen, recorded, and kept by a resume."""

import pytest
import torch

from seq2seq_attn.model.weights import read_tensors, write_tensors
from seq2seq_attn.runtime import threads
from seq2seq_attn.runtime.threads import USER_VARIABLES

CHOSEN = ("train.num_threads=null", "train.max_updates=1")


@pytest.fixture(autouse=True)
def _machine(monkeypatch):
    """Four CPUs, and a user who has set no number. Numbers are noted only: threads are slow where
    tests run in parallel."""
    numbers = [4]
    monkeypatch.setattr(torch, "set_num_threads", numbers.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: numbers[-1])
    for name in USER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "num_cores", lambda: None)
    monkeypatch.setattr(threads, "num_available_cpus", lambda: 4)


def recorded(run):
    """The numbers in a run's environment and in its state."""
    return run.environment["num_threads"], read_tensors(run.state_path).values["num_threads"]


@pytest.mark.parametrize(
    ("before", "variable", "number"),
    [
        (3, None, 3),
        (3, "1", 1),
        (5, None, 1),
    ],  # more than this machine has: chosen again, and the model is small
)
def test_a_resume_has_the_threads_of_the_run_unless_the_user_sets_them(
    train_toy, monkeypatch, caplog, before, variable, number
):
    run = train_toy(*CHOSEN)
    assert recorded(run) == (1, 1)
    tensors, values, _ = read_tensors(run.state_path)
    write_tensors(run.state_path, tensors, {**values, "num_threads": before})
    if variable:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    train_toy(*CHOSEN, "train.max_updates=2", resume=True)
    assert recorded(run) == (1, number)
    assert any("num_threads" in message for message in caplog.messages) == (number != before)


def test_processes_of_a_machine_share_its_cpus(train_toy, monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    run = train_toy(*CHOSEN)
    assert recorded(run) == (2, 2)


def test_a_smaller_model_that_validation_reads_does_not_change_them(train_toy):
    other = train_toy("train.max_updates=1", name="other")
    fusion = f"search.scorers={{fusion: {{run: {other.path}, source: Hund}}}}"
    assert recorded(train_toy("train.num_threads=2", "train.max_updates=1", fusion)) == (2, 2)
