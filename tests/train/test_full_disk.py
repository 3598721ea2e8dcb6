"""A file that cannot grow, as on a full disk: the error names it."""

from __future__ import annotations

import logging
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.sequences import append_raw
from seq2seq_attn.files import write_text
from seq2seq_attn.model.weights import write_tensors
from seq2seq_attn.train import checkpoint
from seq2seq_attn.train.log import RunLog
from tests.train.conftest import ConfigMaker

log = logging.getLogger("seq2seq_attn.some.module")


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def too_large(path: Path) -> Iterator[None]:
    with files_of_at_most(4096), pytest.raises(OSError, match="File too large") as caught:
        yield
    assert caught.value.filename == str(path)
    assert not list(path.parent.glob(".*.tmp"))


def test_files(tmp_path: Path) -> None:
    with too_large(tmp_path / "a"):
        write_text(tmp_path / "a", "x" * 9999)
    with too_large(tmp_path / "last" / "state.safetensors"):
        write_tensors(tmp_path / "last" / checkpoint.STATE, {}, {"text": "x" * 9999})
    with files_of_at_most(4096), pytest.raises(OSError, match="File too large"):
        append_raw(tmp_path / "b", np.zeros(9999))
    with too_large(tmp_path / "c"):
        write_tensors(tmp_path / "c", {"w": torch.zeros(9999)}, {})


def test_a_prepared_corpus(toy_config: ConfigMaker, tmp_path: Path) -> None:
    config = toy_config(f"data.data_dir={tmp_path}")
    with files_of_at_most(4096), pytest.raises(OSError, match="File too large") as caught:
        prepare_corpus(config)
    assert caught.value.filename.startswith(f"{tmp_path}/prepared/files-")
    assert list((tmp_path / "prepared").iterdir()) == []


def test_the_record_of_a_run(tmp_path: Path) -> None:
    with too_large(tmp_path / "metrics.jsonl"), RunLog(tmp_path) as run_log:
        run_log.event("train", update=1, epoch=0, text="x" * 9999)
    with too_large(tmp_path / "train.log"), RunLog(tmp_path):
        log.warning("x" * 9999)


def test_the_events_of_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda *args: None)  # its thread prints the error, then hands it on
    with too_large(tmp_path), RunLog(tmp_path) as run_log:
        for number in range(200):
            run_log.event("train", update=number, epoch=0, loss=1.0, nll=1.0)
            (tmp_path / "metrics.jsonl").write_text("")
