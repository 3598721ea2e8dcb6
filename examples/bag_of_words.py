"""A metric from outside the package: the F1 score of the words, whatever their order.

F1 = 200 * matches / (words of the translation + words of the reference)

seq2seq evaluate --import bag_of_words --metric bag_of_words:BagOfWords --metric bleu
seq2seq train --import bag_of_words --set train.validation.metric=bag_of_words:BagOfWords
"""

from collections import Counter
from collections.abc import Sequence

from seq2seq_attn.metrics.edits import OwnMetric


class BagOfWords(OwnMetric):
    """The F1 score of the words. Of several references, the one with the most matches counts."""

    title = "bag of words"
    about = "words shared with the reference in any order, 0 to 100"

    def count(self, hypothesis: str, references: Sequence[str]) -> Sequence[float]:
        words = Counter(hypothesis.split())
        counts = []
        for reference in references:
            expected = Counter(reference.split())
            counts.append([(words & expected).total(), words.total() + expected.total()])
        return max(counts)

    def score(self, sums: Sequence[float]) -> float:
        matches, words = sums
        return 200 * matches / words if words else 100.0
