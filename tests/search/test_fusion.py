"""Shallow fusion: the totals are those of the formula, with the language model's own state moved along."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.search.scorers.fusion import Fusion
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.text.vocab import BOS, EOS, UNK
from seq2seq_attn.translate.translation import Translation
from seq2seq_attn.translate.translator import Translator
from tests.search.fake_model import FakeModel, sources
from tests.search.searching import best_of_all, search
from tests.toy_run import SOURCE, make_toy_run, toy_config

MODEL = FakeModel(num_free=2, seed=2, sharpness=1.0, eos_bonus=0.5)
LANGUAGE = FakeModel(num_free=2, seed=11, sharpness=2.0)
LINE = [8]


@pytest.mark.parametrize("weight", [0.0, 0.6])
def test_a_beam_wide_enough_finds_the_best_of_all(weight: float) -> None:
    ids, batch = sources(5, 2)
    scorer = Fusion(LANGUAGE, LINE, UNK + 3, weight=weight)
    found = search(MODEL, batch, [4] * 5, scorers=[scorer], beam_size=64)
    for source, [best] in zip(ids, found, strict=True):
        scored = best_of_all(lambda c, s=source: MODEL.log_prob(s, c) + weight * LANGUAGE.log_prob(LINE, c), 4)
        assert (best.ids, best.score) == (scored[0][0], pytest.approx(scored[0][1], rel=1e-4))
        assert best.log_prob == pytest.approx(MODEL.log_prob(source, best.ids), rel=1e-4)


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
