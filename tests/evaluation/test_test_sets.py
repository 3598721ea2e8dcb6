"""Finding the test sets of runs: what is refused before any corpus is prepared."""

from __future__ import annotations

import pytest

from seq2seq_attn.config import load_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.evaluation.test_sets import find_sets
from seq2seq_attn.run_dir import RunDir


@pytest.mark.parametrize(("key", "splits"), [("num_test", ()), ("num_valid", ("valid",))])
def test_captions_of_different_sizes_are_refused_before_any_are_made(tmp_path, monkeypatch, key, splits):
    monkeypatch.chdir(tmp_path)
    sizes = ["data.captions.num_train=40", "data.captions.num_valid=9", "data.captions.num_test=9"]
    configs = [load_config(["quickstart"], [*sizes, f"data.captions.{key}={number}"]) for number in (5, 6)]
    runs = [RunDir(tmp_path / name) for name in "ab"]
    with pytest.raises(UsageError, match=r"b and .*a have different test sets"):
        find_sets(runs, configs, splits, None, None)
    assert list(tmp_path.iterdir()) == []
