"""Several processes: shares, errors, generators and GPUs of the ranks. `tests/e2e/test_torchrun.py`
starts some."""

import pytest
import torch

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.train.checkpoint import rng_state, set_rng_state
from seq2seq_attn.train.distributed import Group, join_group, local_device

CPU = torch.device("cpu")


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_joined_shares_are_the_whole(size):
    items = list("abcdefghijk")
    groups = [Group(rank, size) for rank in range(size)]
    assert groups[0].interleave([group.share(items) for group in groups]) == items


@pytest.mark.parametrize("size", ["x", "0", "2"])
def test_an_environment_that_torchrun_did_not_make(monkeypatch, size):
    monkeypatch.setenv("WORLD_SIZE", size)
    with pytest.raises(UsageError, match="WORLD_SIZE"), join_group():
        pass


@pytest.mark.parametrize(
    "error", [UserError("not a file"), PermissionError(13, "Permission denied", "x")]
)
def test_an_error_of_the_first_rank_is_reported_once(monkeypatch, error):
    sent = []

    def broadcast(held, src):
        held[:] = sent or held
        sent[:] = held

    monkeypatch.setattr(torch.distributed, "broadcast_object_list", broadcast)
    with pytest.raises(type(error)), Group(0, 2).in_turn():
        raise error
    with pytest.raises(SystemExit, match="1"), Group(1, 2).in_turn():
        pytest.fail("the block must not run")


def test_every_rank_gets_its_own_generators_back():
    tensors = {}
    drawn = []
    for rank in range(3):
        torch.manual_seed(rank)
        tensors |= rng_state(CPU, rank)
        drawn.append(torch.rand(3))
    for rank, expected in enumerate(drawn):
        set_rng_state(tensors, CPU, rank=rank)
        assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("name", "environment", "expected"),
    [
        ("cpu", {"LOCAL_WORLD_SIZE": "2"}, "cpu"),
        ("auto", {}, "cuda"),
        ("cuda:1", {"LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}, "cuda:1"),
        ("auto", {"LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "1"}, "cuda:1"),
        ("auto", {"LOCAL_WORLD_SIZE": "3", "LOCAL_RANK": "0"}, None),
        ("cuda:0", {"LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "0"}, None),
    ],
)
def test_each_rank_of_a_machine_takes_a_gpu_of_its_own(monkeypatch, name, environment, expected):
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    if expected is None:
        with pytest.raises(UsageError, match=f"'{name}'.*2 usable CUDA GPUs"):
            local_device(name)
    else:
        assert local_device(name) == torch.device(expected)
