"""Learning curves from metrics.jsonl, which may be missing, unfinished or anybody's."""

from __future__ import annotations

import json
import os

import pytest

from seq2seq_attn.evaluation import learning_curve
from seq2seq_attn.evaluation.learning_curve import Validation, read_validations


def written(path, *lines):
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def test_the_validations_of_a_run(tmp_path):
    path = written(
        tmp_path / "metrics.jsonl",
        {"event": "train", "update": 50, "loss": 5.0},
        {"event": "validation", "update": 100, "bleu": 1.5, "perplexity": 90.25},
        {"event": "validation", "update": 300, "bleu": 9, "perplexity": None},
        {"event": "validation", "update": 200, "perplexity": 40.0},
        {"event": "end", "update": 300},
    )
    assert read_validations(path) == [
        Validation(100, 1.5, 90.25),
        Validation(200, None, 40.0),
        Validation(300, 9.0, None),
    ]


HOSTILE = [
    '{"event": "validation", "update": 4',
    "[" * 100_000 + '"validation"',
    '{"event": "validation", "update": ' + "9" * 5000 + "}",
    '{"event": "validation", "update": -1, "bleu": 1}',
    '{"event": "validation", "update": true}',
    '{"event": "validation", "update": "5"}',
    '["validation"]',
    '{"event": {"validation": 1}, "update": 6}',
]


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_a_line_that_is_no_validation_is_skipped(tmp_path, line):
    path = written(tmp_path / "m", line, {"event": "validation", "update": 7, "bleu": 1e400, "perplexity": [1]})
    assert read_validations(path) == [Validation(7, None, None)]


def test_files_that_are_none(tmp_path, monkeypatch, caplog):
    assert read_validations(tmp_path / "missing") == []
    assert not caplog.messages  # a run that never validated
    assert read_validations(tmp_path) == []
    assert [message.partition(":")[0] for message in caplog.messages] == [str(tmp_path)]
    os.mkfifo(tmp_path / "pipe")
    assert read_validations(tmp_path / "pipe") == []
    path = written(tmp_path / "large", {"event": "validation", "update": 7})
    monkeypatch.setattr(learning_curve, "MAX_BYTES", 10)
    assert read_validations(path) == []
    assert caplog.messages[-1].startswith(f"{path}: ")
