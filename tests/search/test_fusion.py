"""Shallow fusion of runs; `test_scorers.py` has the scorer itself."""

from pathlib import Path

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.text.vocab import BOS, EOS
from seq2seq_attn.translate.translation import Translation
from seq2seq_attn.translate.translator import Translator
from tests.toy_run import SOURCE, make_toy_run, toy_config


def test_runs_are_fused_by_name(tmp_path: Path) -> None:
    make_toy_run(tmp_path / "run", toy_config(tokenizer="spacy"), seed=4)
    make_toy_run(tmp_path / "lm", toy_config(tokenizer="spacy", attention="fixed"), seed=5)
    make_toy_run(tmp_path / "subwords")
    translator, language = load(tmp_path / "run", "cpu"), load(tmp_path / "lm", "cpu")

    def fused(run: str, weight: float, **options: object) -> list[Translation]:
        scorers = {"fusion": {"run": str(tmp_path / run), "weight": weight, "source": SOURCE[0]}}
        return translator.translate(SOURCE, scorers=scorers, **options)

    plain = translator.translate(SOURCE)
    for one, other in zip(plain, fused("lm", 0.0), strict=True):
        assert (one.tokens, one.log_prob, one.score) == (
            other.tokens,
            *map(pytest.approx, (other.log_prob, other.score)),
        )
    found = fused("lm", 0.5, beam_size=4)
    assert [one.tokens for one in found] != [one.tokens for one in plain]
    for source, one in zip(SOURCE, found, strict=True):
        assert one.log_prob == pytest.approx(log_prob(translator, source, one), rel=1e-4)
        assert one.score == pytest.approx(one.log_prob + 0.5 * log_prob(language, SOURCE[0], one), rel=1e-4)
    with pytest.raises(UsageError, match="subwords"):
        fused("subwords", 0.5)
    with pytest.raises(UsageError, match=r"search\.scorers\.fusion\.wieght"):
        translator.translate(SOURCE, scorers={"fusion": {"run": "x", "wieght": 1}})


@torch.inference_mode()
def log_prob(translator: Translator, line: str, made: Translation) -> float:
    """The log-probability of a translation's tokens after a source line, step by step."""
    steps, total, previous = step_model(translator.model), 0.0, BOS  # type: ignore[arg-type]
    state = steps.start(collate_source([translator.source_vocab.ids_of(translator.source_tokenizer.tokenize(line))]), 1)
    for token in [*translator.target_vocab.ids_of(made.tokens), *([EOS] if made.is_finished else [])]:
        tokens, state = steps.step(torch.tensor([previous]), state)
        total, previous = total + float(tokens.log_probs()[0, token]), token
    return total
