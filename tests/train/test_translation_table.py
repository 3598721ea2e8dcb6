"""The output `lexicon` gets its table when training starts, and keeps it with the weights."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.data.sequences import SequenceStore, SequenceWriter
from seq2seq_attn.data.store import PairStore
from seq2seq_attn.model.output.softmax import Softmax
from seq2seq_attn.text.ibm1 import TranslationTable
from seq2seq_attn.text.vocab import SPECIALS
from seq2seq_attn.train import checkpoint
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.pretrained import set_table
from tests.train.conftest import ConfigMaker

OUTPUT = "model.output={name: lexicon, options: {num_entries: 3}}"


def single_tokens(prefix: Path, ids: list[int]) -> SequenceStore:
    """Sentences of one token."""
    SequenceWriter(prefix).add(np.array(ids), np.ones(len(ids), dtype=np.int64))
    return SequenceStore(prefix)


def test_the_table_is_that_of_all_pairs(tmp_path: Path) -> None:
    """Sentences of one token, each translated in its own way."""
    sources, targets = [4, 5, 6, 7], [9, 8, 6, 5]
    found: list[TranslationTable] = []

    class Wanting(Softmax):
        def set_table(self, table: TranslationTable) -> str:
            found.append(table)
            return "taken"

    pairs = PairStore(single_tokens(tmp_path / "source", sources), single_tokens(tmp_path / "target", targets))
    assert set_table(Wanting(3, 10), pairs) == ["taken"]
    assert set_table(Softmax(3, 10), pairs) == []
    [table] = found
    np.testing.assert_array_equal(table.lookup(np.array(sources), np.array(targets)), np.eye(4))


def test_a_resumed_and_moved_run_translates_with_its_table(
    toy_config: ConfigMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    average = "train.optimizer.average_decay=0.9"
    with caplog.at_level(logging.INFO):
        whole = train(toy_config(OUTPUT, average, "train.max_updates=4"), run_dir=tmp_path / "a")
    assert "lexicon: " in caplog.text
    assert "source types, by IBM model 1" in caplog.text
    half = train(toy_config(OUTPUT, average, "train.max_updates=2"), run_dir=tmp_path / "b")
    shutil.move(half.path, tmp_path / "moved")
    resumed = train(toy_config(OUTPUT, average, "train.max_updates=4"), run_dir=tmp_path / "moved", resume=True)
    states = [checkpoint.load_state(run.last_dir).tensors for run in (whole, resumed)]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())
    probs_UK = resumed.load_best().tensors["output.probs_UK"]
    assert probs_UK.shape == (len(resumed.vocab("source")), 3)
    sums = probs_UK[len(SPECIALS) :].sum(dim=1)
    torch.testing.assert_close(sums, torch.ones_like(sums))
    translator = load(resumed.path)
    assert torch.equal(translator.model.output.probs_UK, probs_UK)  # type: ignore[union-attr]
    assert len(translator.translate(["Hund"])) == 1
