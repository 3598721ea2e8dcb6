"""A file that cannot grow, as on a full disk: the error names it."""

import logging
import resource
import threading
from contextlib import contextmanager

import pytest
import torch

from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.files import write_text
from seq2seq_attn.model.weights import write_tensors
from tests.train.conftest import open_log


@contextmanager
def too_large(path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(caught.value.filename).startswith(str(path))
    assert not list(path.parent.glob(".*.tmp"))


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_text(path, "x" * 9999),
        lambda path: write_tensors(path, {"w": torch.zeros(9999)}, {}),
    ],
)
def test_files(tmp_path, write):
    with too_large(tmp_path / "a"):
        write(tmp_path / "a")


def test_a_prepared_corpus(toy_config, tmp_path):
    with too_large(tmp_path / "prepared" / "files-"):
        prepare_corpus(toy_config(f"data.data_dir={tmp_path}"))
    assert list((tmp_path / "prepared").iterdir()) == []


def test_the_log_of_a_run(tmp_path, monkeypatch):
    with too_large(tmp_path / "metrics.jsonl"), open_log(tmp_path) as run_log:
        run_log.event("train", update=1, epoch=0, text="x" * 9999)
    with too_large(tmp_path / "train.log"), open_log(tmp_path):
        logging.getLogger("seq2seq_attn.some.module").warning("x" * 9999)
    monkeypatch.setattr(
        threading, "excepthook", lambda *args: None
    )  # TensorBoard's thread prints the error
    with too_large(tmp_path), open_log(tmp_path) as run_log:
        for number in range(200):
            run_log.event("train", update=number, epoch=0, loss=1.0, nll=1.0)
            (tmp_path / "metrics.jsonl").write_text("")
