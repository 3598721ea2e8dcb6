"""Two processes that `torchrun` starts train the model that one process trains; stopped and
resumed, too."""

import resource
import signal
import subprocess
import sys

import pytest
import torch

from seq2seq_attn.model.weights import read_tensors
from seq2seq_attn.run import Run
from tests.processes import output_of
from tests.train.conftest import toy_settings
from tests.train.runs import assert_same_tensors, events
from tests.waiting import wait_for

TORCHRUN = "-m torch.distributed.run --standalone --nproc-per-node 2".split()
NO_DROPOUT = tuple(f"model.dropout.{place}=0" for place in ("embedding", "encoder", "readout"))
LIMIT_S = 240


def command(corpus, run, *settings, num_processes, options=()):
    launcher = TORCHRUN if num_processes == 2 else []
    overrides = [
        part for setting in [*toy_settings(corpus), *settings] for part in ("--set", setting)
    ]
    train = [*"-m seq2seq_attn train -c base --run-dir".split(), str(run)]
    return [sys.executable, *launcher, *train, *overrides, *options]


def train(*args, **kwargs):
    assert output_of(command(*args, **kwargs), timeout=LIMIT_S) == f"{args[1]}\n"
    return Run(args[1])


def flat_events(run, event):
    """With objectives beside the other values."""
    return [{**line.pop("objectives", {}), **line} for line in events(run, event)]


def test_two_processes_train_and_validate_as_one_does(toy_corpus, tmp_path):
    # 160 pairs in batches of 53: the last one has a single row, and the second process none of it
    settings = (
        *NO_DROPOUT,
        "train.batch.size=53",
        "train.batch.accumulate=2",
        "train.max_epochs=2",
        "train.log_every_updates=1",
        "train.optimizer.average_decay=0.9",
        "train.objectives={coverage: {}, fertility: {weight: 0.5}, agreement: {}}",
    )
    one = train(toy_corpus, tmp_path / "one", *settings, num_processes=1)
    two = train(toy_corpus, tmp_path / "two", *settings, num_processes=2)
    assert len(flat_events(two, "train")) == 4
    assert {"coverage", "fertility", "agreement", "reverse"} <= flat_events(two, "train")[0].keys()
    for event in ("train", "validation"):
        for found, expected in zip(flat_events(two, event), flat_events(one, event), strict=True):
            assert found.keys() == expected.keys()
            for name, value in expected.items():
                is_number = isinstance(value, float)
                close = pytest.approx(value, rel=1e-4, abs=1e-6) if is_number else value
                assert found[name] == close, name
    for found, expected in ((two, one), (two.reverse, one.reverse)):
        torch.testing.assert_close(
            found.load_best().tensors, expected.load_best().tensors, rtol=1e-3, atol=1e-5
        )


@pytest.mark.slow
def test_two_processes_stopped_and_resumed_end_as_if_nothing_had_happened(toy_corpus, tmp_path):
    settings = (
        "train.max_epochs=25",
        "train.validation.num_pairs=5",
        "train.validation.every_updates=100",
    )
    whole = train(toy_corpus, tmp_path / "whole", *settings, num_processes=2)
    stopped = Run(tmp_path / "stopped")
    process = subprocess.Popen(
        command(toy_corpus, stopped.path, *settings, num_processes=2),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: stopped.metrics_path.exists() and len(events(stopped, "train")) > 3, LIMIT_S)
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=LIMIT_S)
    assert "continue with --resume" in log, log
    assert 0 < read_tensors(stopped.state_path).values["state"]["update"] < 250
    train(toy_corpus, stopped.path, *settings, num_processes=2, options=("--resume",))
    assert_same_tensors(stopped, whole)
    assert "rng/1/torch" in read_tensors(stopped.state_path).tensors
    assert events(stopped, "validation") == events(whole, "validation")


@pytest.mark.slow
def test_a_full_disk_is_reported_by_one_process(toy_corpus, tmp_path):
    """The other process waits for it."""
    path = tmp_path / "run"
    done = subprocess.run(
        command(toy_corpus, path, num_processes=2),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000)),
    )
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert [line for line in lines if str(path) in line] == lines[:1]
    assert [
        line for line in lines[1:] if "another process of this training has ended" not in line
    ] == []
    assert "gloo" not in done.stderr
