"""The validations of a run, from a file that may be anybody's."""

import json
import os

import pytest

from seq2seq_attn.run import Run
from seq2seq_attn.run.history import parse_validations


def test_validations_come_by_update():
    content = lines(
        {"event": "train", "update": 50, "loss": 5.0},
        {"event": "validation", "update": 100, "bleu": 1.5, "perplexity": 90.25},
        {"event": "validation", "update": 300, "bleu": 9, "perplexity": None},
        {"event": "validation", "update": 200, "perplexity": 40.0},
        {"event": "end", "update": 300},
    )
    expected = [(100, 1.5, 90.25), (200, None, 40.0), (300, 9.0, None)]
    assert parse_validations(content) == expected


HOSTILE = [
    '{"event": "validation", "update": 4',
    "[" * 100_000 + '"validation"',
    '{"event": "validation", "update": ' + "9" * 5000 + "}",
    '{"event": "validation", "update": -1, "bleu": 1}',
    '{"event": "validation", "update": true}',
    '{"event": "validation", "update": "5"}',
    '["validation"]',
    '{"event": {"validation": 1}, "update": 6}',
    '{"validation": 1, "update": 6}',
]


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_a_line_that_is_no_validation_is_skipped(line):
    last = {"event": "validation", "update": 7, "bleu": 1e400, "perplexity": [1]}
    assert parse_validations(lines(line, last)) == [(7, None, None)]


def test_a_run_that_never_validated_has_no_validations(tmp_path, caplog):
    assert Run(tmp_path).validations == []
    assert not caplog.messages


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_an_unreadable_history_is_logged(tmp_path, caplog, make):
    (tmp_path / "manifest.json").write_text("{}")
    make(tmp_path / "metrics.jsonl")
    assert Run(tmp_path).validations == []
    assert "metrics.jsonl" in caplog.text


def lines(*values):
    rows = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return "".join(f"{row}\n" for row in rows).encode()
