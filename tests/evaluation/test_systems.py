"""What is evaluated is one model, whatever its run is doing; learning curves from a file that may
be anybody's."""

import json
import os
from pathlib import Path

import pytest

from seq2seq_attn.evaluation.systems import System, read_validations
from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.evaluation.translations import translate_set
from tests.toy_run import SOURCE, TARGET, make_toy_run


def test_a_training_beside_an_evaluation_does_not_mix_two_models(tmp_path):
    """Hash, translations and scores are those of the model that was read first; reused translations
    too."""
    run = make_toy_run(tmp_path / "run")
    test_set = EvaluationSet("test", SOURCE, TARGET)

    def evaluate(*, is_overtaken: bool) -> tuple[object, ...]:
        system = System("run", [run], [run.config], device="cpu")
        model_hash = system.model_hash
        if is_overtaken:
            run.save_best(
                make_toy_run(tmp_path / "later", seed=5).load_best().tensors, {"update": 9}
            )
        made = translate_set(system, test_set, hyps_dir=run.hyps_dir, reuse_hypotheses=True)
        return model_hash, made.lines, system.model_hash, system.describe()["model"], made.is_reused

    expected = evaluate(is_overtaken=False)
    assert evaluate(is_overtaken=False) == (*expected[:-1], True)
    (run.hyps_dir / "test.txt").unlink()
    assert evaluate(is_overtaken=True) == expected
    later = evaluate(is_overtaken=False)
    assert later[3] == {"update": 9}
    assert later[1] != expected[1]
    assert not later[-1]


def write_lines(path: Path, *lines: object) -> Path:
    path.write_text(
        "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    )
    return path


def test_the_validations_of_a_run(tmp_path):
    path = write_lines(
        tmp_path / "metrics.jsonl",
        {"event": "train", "update": 50, "loss": 5.0},
        {"event": "validation", "update": 100, "bleu": 1.5, "perplexity": 90.25},
        {"event": "validation", "update": 300, "bleu": 9, "perplexity": None},
        {"event": "validation", "update": 200, "perplexity": 40.0},
        {"event": "end", "update": 300},
    )
    expected = [(100, 1.5, 90.25), (200, None, 40.0), (300, 9.0, None)]
    assert read_validations(path) == expected


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
def test_a_line_that_is_no_validation_is_skipped(tmp_path, line):
    path = write_lines(
        tmp_path / "m", line, {"event": "validation", "update": 7, "bleu": 1e400, "perplexity": [1]}
    )
    assert read_validations(path) == [(7, None, None)]


def test_files_that_hold_no_validations(tmp_path, caplog):
    assert read_validations(tmp_path / "missing") == []
    assert not caplog.messages  # a run that never validated
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        caplog.clear()
        assert read_validations(path) == []
        assert [message.partition(":")[0] for message in caplog.messages] == [str(path)]
