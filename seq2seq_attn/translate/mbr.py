"""Minimum Bayes risk: of many samples, the translation that the others resemble most (Kumar & Byrne 2004; with samples
as in Eikema & Aziz 2020, section 6).

    y* = argmax_y 1/N sum_n chrF(y, y_n)        over the samples y_1 ... y_N

chrF is sacreBLEU's chrF2 of a sentence, but 100, not 0, of two empty ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from seq2seq_attn.translate.translation import Translation


def least_risk(samples: Sequence[Translation], n_best: int) -> list[Translation]:
    """The `n_best` different texts with the highest expected chrF, best first, with that chrF as their score."""
    from sacrebleu.metrics.chrf import CHRF

    counts = Counter(sample.text for sample in samples)
    first = {sample.text: sample for sample in reversed(samples)}
    chrf = CHRF()

    def utility(text: str, other: str) -> float:
        return 100.0 if text == other else chrf.sentence_score(text, [other]).score

    expected = {
        text: sum(count * utility(text, other) for other, count in counts.items()) / len(samples) for text in counts
    }
    ranked = sorted(expected, key=lambda text: -expected[text])
    return [replace(first[text], score=expected[text]) for text in ranked[:n_best]]
