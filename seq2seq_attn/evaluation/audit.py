"""Audit test sets: find repeated pairs, blank lines and very long lines, which make scores,
intervals and tests less reliable than they seem.

Copies of a pair add no information: a test set of 1,000 lines that has 50 sentences 20 times each
is a sample of 50 sentences. If the bootstrap resampled lines, intervals would be too narrow by a
factor of sqrt(20). So the bootstrap draws distinct pairs with all their copies, as for any
clustered sample (Field and Welsh 2007, "Bootstrapping clustered data").
"""

import numpy as np

from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.metrics.bleu import IntArray

COPIES_SHARE = 0.05
"""The share of the pairs that may be copies without a warning. A few copies are common in test sets
and hardly matter."""
HEAVY_SHARE = 0.05
"""The share of all characters that a line may have without a warning."""
_HEAVY_RATIO = 10
"""The length that a line may have without a warning, as a multiple of the mean length. In a small
set, some line always has more than `HEAVY_SHARE`."""


def find_copies(test_set: EvaluationSet) -> IntArray:
    """Return, for each pair, the index of the first pair with the same source and references."""
    first_indices: dict[tuple[str, ...], int] = {}
    pairs = zip(test_set.source, test_set.references, *test_set.other_references, strict=True)
    indices = [first_indices.setdefault(pair, index) for index, pair in enumerate(pairs)]
    return np.array(indices, dtype=np.int64)


def audit_set(test_set: EvaluationSet) -> list[str]:
    """Return a warning for each problem of a test set: many copies, blank references, blank source
    lines, and a line that has much of the text."""
    num_pairs = len(test_set.references)
    num_copies = num_pairs - len(np.unique(find_copies(test_set)))
    references = [test_set.references, *test_set.other_references]
    warnings = []
    if num_copies > COPIES_SHARE * num_pairs:
        warnings.append(
            f"{num_copies:,} of the {num_pairs:,} pairs repeat an earlier pair: intervals and p "
            "count each distinct pair once"
        )
    num_blank_references = sum(not line.strip() for lines in references for line in lines)
    if num_blank_references:
        warnings.append(
            f"{num_blank_references:,} of the {num_pairs * len(references):,} references are "
            "blank: every translation of them counts as wrong; remove these pairs"
        )
    num_blank_sources = sum(not line.strip() for line in test_set.source)
    if num_blank_sources:
        warnings.append(
            f"{num_blank_sources:,} of the {num_pairs:,} source lines are blank and have no "
            "translation; remove these pairs"
        )
    lengths = np.array([len(line) for line in test_set.references])
    heaviest = int(lengths.argmax())
    share = lengths[heaviest] / max(1, lengths.sum())
    if share > max(HEAVY_SHARE, _HEAVY_RATIO / num_pairs):
        warnings.append(
            f"the reference of line {heaviest + 1:,} has {share:.0%} of the characters of all "
            "references, so this line decides much of the score; split it into sentences"
        )
    return warnings
