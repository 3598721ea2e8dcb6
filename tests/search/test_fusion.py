"""Shallow fusion of runs by name; `test_scorers.py` has the scorer, `tests/train/test_language_model.py` its scores."""

from pathlib import Path

import pytest

from seq2seq_attn import load
from seq2seq_attn.errors import UsageError
from tests.toy_run import SOURCE, make_toy_run, toy_config


def test_runs_are_fused_by_name(tmp_path: Path) -> None:
    make_toy_run(tmp_path / "run", toy_config(tokenizer="spacy"), seed=4)
    make_toy_run(tmp_path / "lm", toy_config(tokenizer="spacy", attention="fixed"), seed=5)
    make_toy_run(tmp_path / "subwords")
    translator = load(tmp_path / "run", "cpu")

    def fused(run: str, weight: float) -> list[list[str]]:
        scorers = {"fusion": {"run": str(tmp_path / run), "weight": weight, "source": SOURCE[0]}}
        return [one.tokens for one in translator.translate(SOURCE, scorers=scorers)]

    plain = [one.tokens for one in translator.translate(SOURCE)]
    assert fused("lm", 0.0) == plain != fused("lm", 0.5)
    with pytest.raises(UsageError, match="subwords"):
        fused("subwords", 0.5)
    with pytest.raises(UsageError, match=r"search\.scorers\.fusion\.wieght"):
        translator.translate(SOURCE, scorers={"fusion": {"run": "x", "wieght": 1}})
