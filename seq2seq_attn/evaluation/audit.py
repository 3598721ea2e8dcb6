"""Audit test sets: find what makes scores, intervals and tests say less than they seem to.

Copies of a pair add nothing that is new: a test set of 50 sentences that has each of them 20 times
is a sample of 50, not of 1,000. Resampling its lines would narrow every interval by sqrt(20). So
the bootstrap draws distinct pairs with all their copies, as for any clustered sample (Field and
Welsh 2007, "Bootstrapping clustered data").
"""

import numpy as np

from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.metrics.bleu import IntArray

COPIES_SHARE = 0.05
"""Fewer copies than this share of the pairs are common in a test set and hardly matter."""
HEAVY_SHARE = 0.05
"""A line is said to outweigh the others if it has more than this share of all characters."""
_HEAVY_RATIO = 10
"""It must also have more than this number of times the mean, as some line of a small set is always
long."""


def find_copies(test_set: EvaluationSet) -> IntArray:
    """Return for each pair the index of the first pair with the same source and references."""
    first: dict[tuple[str, ...], int] = {}
    indices = []
    rows = zip(test_set.source, test_set.references, *test_set.other_references, strict=True)
    for index, row in enumerate(rows):
        indices.append(first.setdefault(row, index))
    return np.array(indices, dtype=np.int64)


def audit_set(test_set: EvaluationSet) -> list[str]:
    """Return a warning in words for each thing that is wrong with a test set."""
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
