"""Exact match, character error rate (CER) and word error rate (WER), as sacreBLEU metrics.

The counts of all sentences are summed, and the score of a corpus is computed from the sums.

    exact = 100 * sum_n [h_n = r_n] / N
    CER, WER = 100 * sum_n d(h_n, r_n) / sum_n |r_n|

h_n and r_n are the hypothesis and the reference of sentence n, with single spaces. d is their
Levenshtein distance (1966): the fewest insertions, deletions and substitutions that turn h_n into
r_n. CER counts characters, including spaces. WER counts words split at spaces. Error rates may
exceed 100; less is better.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric, Score, Signature

from seq2seq_attn import __version__


def edit_distance(hypothesis: Sequence[str], reference: Sequence[str]) -> int:
    """Return the Levenshtein distance of two sequences.

    Dynamic programming computes a row of the table for each unit of the hypothesis. The columns are
    the lengths of the reference's prefixes.
    """
    units = np.array([*reference], dtype=object)
    columns = np.arange(len(units) + 1)
    row = columns
    for number, unit in enumerate(hypothesis, start=1):
        substituted = row[:-1] + (units != unit)
        deleted = row[1:] + 1
        reached = np.concatenate([[number], np.minimum(substituted, deleted)])
        # Each reference unit that is missing from the hypothesis costs 1 and moves one column to
        # the right, so `accumulate` finds the cheapest column to come from.
        row = np.minimum.accumulate(reached - columns) + columns
    return int(row[-1])


class EditMetric(Metric):
    """A sacreBLEU metric that counts exact matches or edits.

    The statistics of a sentence are [matches, 1] for exact match, otherwise [edits, length of the
    reference]. If a sentence has several references, the reference with the fewest edits counts.
    """

    def __init__(self, unit: str, *, references: Sequence[Sequence[str]]) -> None:
        """Prepare the references; `unit` is `sentence`, `character` or `word`."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.unit = unit
        self._ref_cache = self._cache_references(references)

    def get_signature(self) -> Signature:
        """Return sacreBLEU's signature with the unit of the edits and this package's version."""
        signature = Signature(self.__dict__)
        version = f"seq2seq-attn-{__version__}"
        signature.info.update({"case": "mixed", "unit": self.unit, "version": version})
        return signature

    def _preprocess_segment(self, sent: str) -> str:
        return " ".join(sent.split())

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": refs}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[int]:
        references = ref_kwargs["references"]
        if self.unit == "sentence":
            return [int(hypothesis in references), 1]
        split: Callable[[str], list[str]] = list if self.unit == "character" else str.split
        counts = []
        for reference in references:
            units = split(reference)
            counts.append([edit_distance(split(hypothesis), units), len(units)])
        return min(counts)

    def _compute_score_from_stats(self, stats: Sequence[int]) -> Score:
        count, total = stats
        ratio = count / total if total else float(count > 0)
        kind = "matches" if self.unit == "sentence" else "edits"
        result = Score(self.unit, 100 * ratio)
        result._verbose = f"{kind} = {count} of {total} {self.unit}s"
        return result

    def _aggregate_and_compute(self, stats: Sequence[Sequence[int]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])


class OwnMetric(EditMetric):
    """The contract of metrics from outside the package (`--import`): `count` returns the counts of
    a sentence, and `score` the score of summed counts. So a bucket of lengths, a pooled set or a
    resample is scored from a sum of counts."""

    title: str
    about: str = "a metric of your own"
    """what the score counts, in a few words for readers of reports"""
    is_lower_better: bool = False

    def __init__(self, *, references: Sequence[Sequence[str]]) -> None:
        super().__init__(self.title, references=references)

    @abstractmethod
    def count(self, hypothesis: str, references: Sequence[str]) -> Sequence[float]:
        """Return the counts of a sentence. The number of counts is the same for all sentences."""

    @abstractmethod
    def score(self, sums: Sequence[float]) -> float:
        """Return the score of counts that are summed over sentences."""

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[Any]:
        return [*self.count(hypothesis, ref_kwargs["references"])]

    def _compute_score_from_stats(self, stats: Sequence[float]) -> Score:
        result = Score(self.unit, self.score(stats))
        result._verbose = f"sums = {list(stats)}"
        return result
