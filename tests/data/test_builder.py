"""A corpus in chunks, and the faults of its pairs."""

import subprocess
import sys

import numpy as np
import pytest

from seq2seq_attn.data import builder
from seq2seq_attn.data.builder import Chunk, find_faults, read_chunks


@pytest.fixture
def files(tmp_path):
    """Two splits and one without pairs."""
    found = {}
    for split, lines in (("train", ["a", "", "ccc", "d\r", "e"]), ("valid", ["v", "w"]), ("none", [])):
        found[split] = (tmp_path / f"{split}.de", tmp_path / f"{split}.en")
        for path in found[split]:
            path.write_text("\n".join(lines), newline="")
    return found


def test_chunks_are_of_one_split(files):
    train, valid = ["a", "", "ccc", "d", "e"], ["v", "w"]
    assert list(read_chunks(files)) == [Chunk("train", train, train), Chunk("valid", valid, valid)]


def test_chunks_are_short(files, monkeypatch):
    monkeypatch.setattr(builder, "MAX_PAIRS", 2)
    assert [chunk.sources for chunk in read_chunks(files)] == [["a", ""], ["ccc", "d"], ["e"], ["v", "w"]]
    monkeypatch.setattr(builder, "MAX_CHARACTERS", 3)
    assert [len(chunk.sources) for chunk in read_chunks(files)] == [2, 1, 2, 2]


def test_long_lines_make_small_chunks(files, monkeypatch):
    monkeypatch.setattr(builder, "MAX_CHARACTERS", 2)
    assert [chunk.targets for chunk in read_chunks(files)] == [["a", "", "ccc"], ["d", "e"], ["v", "w"]]


def test_workers_load_no_torch():
    modules = "seq2seq_attn.data.builder, seq2seq_attn.data.processes"
    script = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_faults_by_length():
    source = np.array([0, 3, 11, 10, 1, 2, 30, 0])
    target = np.array([3, 0, 1, 10, 4, 6, 1, 0])
    is_blank, is_over_long, is_ratio_outlier = find_faults(source, target, 10, 3.0).tolist()
    assert is_blank == [True, True, False, False, False, False, False, True]
    assert is_over_long == [False, False, True, False, False, False, True, False]
    assert is_ratio_outlier == [False, False, True, False, True, False, True, False]
