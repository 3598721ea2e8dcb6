"""GLEU, a similarity of two sentences (Wu et al. 2016, "Google's neural machine translation system")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

MAX_ORDER = 4


def gleu(hypothesis: Sequence[Hashable], reference: Sequence[Hashable]) -> float:
    """The smaller of precision and recall of all n-grams of one to four tokens, in [0, 1]; 1 for two empty
    sentences."""
    of_hypothesis, of_reference = _ngrams(hypothesis), _ngrams(reference)
    num_shared = (of_hypothesis & of_reference).total()
    largest = max(of_hypothesis.total(), of_reference.total())
    return num_shared / largest if largest else 1.0


def _ngrams(tokens: Sequence[Hashable]) -> Counter[tuple[Hashable, ...]]:
    return Counter(
        tuple(tokens[start : start + order])
        for order in range(1, MAX_ORDER + 1)
        for start in range(len(tokens) - order + 1)
    )
