"""Helpers for tests of whole training runs: what a run has recorded, equality bit for bit, and acts
at an update."""

import json

import pytest
import torch

from seq2seq_attn.model.weights import read_tensors
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.update import Updater

TIMES = {"elapsed_s", "seconds", "tokens_per_s"}


def events(run, kind=None):
    """The lines of metrics.jsonl, without what a clock says."""
    lines = []
    for text in run.metrics_path.read_text("utf-8").splitlines():
        line = json.loads(text)
        if kind in (None, line["event"]):
            lines.append({key: value for key, value in line.items() if key not in TIMES})
    return lines


def logged(run):
    return run.log_path.read_text("utf-8")


def saved_state(run):
    """The counters of the saved state, without what a clock says."""
    state = read_tensors(run.state_path).values["state"]
    state.update(elapsed_s=0.0, metrics_position=0)
    state["window"]["seconds"] = 0.0
    return state


def assert_same_tensors(run, expected):
    """Bit for bit: weights, moments, averages, random generators."""
    tensors = read_tensors(run.state_path).tensors
    expected_tensors = read_tensors(expected.state_path).tensors
    assert tensors.keys() == expected_tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, expected_tensors[name]), name


def assert_same_end(run, expected):
    """Bit for bit: tensors, the best model, counters, history."""
    assert_same_tensors(run, expected)
    assert run.model_path.read_bytes() == expected.model_path.read_bytes()
    assert saved_state(run) == saved_state(expected)
    assert events(run) == events(expected)


def assert_finite(tensors):
    for name, tensor in tensors.items():
        assert tensor.isfinite().all(), name


def at_update(
    patch,
    number,
    act,
    *,
    is_after=False,
):
    """Call `act` before the update of this number, or after it, when it is not recorded yet."""
    apply_update = Updater.apply_update

    def apply(self, batches, *, update, **settings):
        if update == number and not is_after:
            act(self)
        result = apply_update(self, batches, update=update, **settings)
        if update == number and is_after:
            act(self)
        return result

    patch.setattr(Updater, "apply_update", apply)


class Killed(BaseException):
    """Stands for a SIGKILL: nothing may be done about it."""


def die(updater):
    raise Killed


def train_and_die(number, config, **options):
    """Train, and die before the update of this number is recorded: what is not on disk is lost."""
    with pytest.MonkeyPatch.context() as patch:
        at_update(patch, number, die, is_after=True)
        with pytest.raises(Killed):
            train(config, **options)
