"""Minimum Bayes risk: draw many samples and choose the sample that is most similar to the other
samples (Kumar & Byrne 2004; with samples as in Eikema & Aziz 2020, section 6).

    y* = argmax_y 1/N sum_n chrF(y, y_n)        over the samples y_1 ... y_N

chrF is sacreBLEU's sentence chrF2, except that two empty sentences have a chrF of 100, not 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pydantic import model_validator

from seq2seq_attn.errors import UsageError
from seq2seq_attn.runtime.extras import require
from seq2seq_attn.search import sample
from seq2seq_attn.search.base import Hypothesis, SearchSource, StepModel


class Options(sample.Options):
    """The options of minimum Bayes risk, which draws `num_samples` samples per sentence."""

    @property
    def rows_per_sentence(self) -> int:
        """The number of rows in search per sentence: one for each sample."""
        return self.num_samples

    @model_validator(mode="after")
    def _check_n_best(self) -> Options:
        if self.n_best > self.num_samples:
            raise UsageError(
                f"n_best={self.n_best}: more than num_samples={self.num_samples}; set a larger "
                "num_samples"
            )
        return self


def search(model: StepModel[Any], source: SearchSource, options: Options) -> list[list[Hypothesis]]:
    """Return the `n_best` samples of each sentence with the highest expected chrF, best first.

    The samples of a sentence have different texts. Their score is the expected chrF.
    """
    hypotheses = []
    for row, drawn in enumerate(sample.search(model, source, options)):
        texts = [source.to_text(row, hypothesis) for hypothesis in drawn]
        ranked = least_risk(texts, options.n_best)
        hypotheses.append([drawn[index]._replace(score=score) for index, score in ranked])
    return hypotheses


def least_risk(texts: Sequence[str], n_best: int) -> list[tuple[int, float]]:
    """Return the `n_best` different texts with the highest expected chrF, best first.

    Each text is returned as its first index in `texts` and its expected chrF.
    """
    require("train", "sacrebleu")
    from sacrebleu.metrics.chrf import CHRF

    counts = Counter(texts)
    chrf = CHRF()

    expected = {}
    for text in counts:
        utilities = []
        for reference, count in counts.items():
            utility = 100.0
            if text != reference:
                utility = chrf.sentence_score(text, [reference]).score
            utilities.append(count * utility)
        expected[text] = sum(utilities) / len(texts)
    ranked = sorted(expected, key=lambda text: -expected[text])
    return [(texts.index(text), expected[text]) for text in ranked[:n_best]]
