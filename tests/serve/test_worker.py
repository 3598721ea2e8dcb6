"""The process that translates loads runs with variants from outside."""

import logging
import multiprocessing
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from seq2seq_attn.config import config_from_dict
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.variants import import_variants
from seq2seq_attn.serve.worker import load_runs, start_worker
from tests.toy_run import make_toy_run, toy_config

FAILING = """
from pathlib import Path
from seq2seq_attn.model.attention.additive import Additive

class Failing(Additive):
    def __init__(self, *, query_size: int, memory_size: int, normalizer=None):
        super().__init__(query_size=query_size, memory_size=memory_size, normalizer=normalizer)
        Path("table.txt").read_text()
"""


def test_lines_of_the_log_have_the_time(capfd):
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, start_worker) as pool:
        pool.submit(logging.getLogger("seq2seq_attn").warning, "one line").result()
    assert re.search(r"^20\S+ \S+ one line$", capfd.readouterr().err, re.MULTILINE)


def test_an_error_of_a_variant_keeps_its_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    Path("failing.py").write_text(FAILING, "utf-8")
    Path("table.txt").write_text("", "utf-8")
    import_variants("failing")
    settings = toy_config().model_dump()
    settings["model"]["attention"] = {"name": "failing"}
    make_toy_run(Path("mine"), config_from_dict(settings))
    Path("table.txt").unlink()
    with pytest.raises(UserError, match=r"failing\.py:8: FileNotFoundError: .*table\.txt"):
        load_runs({("de", "en"): Path("mine")}, ["failing"], {"device": "cpu"})
