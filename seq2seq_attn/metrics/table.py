"""The table of metrics: the title, kind and options of each metric.

`bleu.py` has the statistics and formulas of each kind. This module imports nothing heavy, so that
the command line can list the metrics in its help.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.variants import Axis, find_build
from seq2seq_attn.runtime.extras import require

LengthOf = Literal["source", "reference"]
LengthIn = Literal["tokens", "characters"]


class Metric(NamedTuple):
    """The properties of one metric."""

    title: str
    kind: Any
    """the kind of statistics and formula (`bleu.py`), or the class of an imported metric"""
    about: str
    """what the score counts, in a few words for readers of reports"""
    options: Mapping[str, Any] = MappingProxyType({})
    """options of the class that counts the statistics"""
    is_lower_better: bool = False
    is_scored_by_length: bool = True


METRICS = {
    "bleu": Metric(
        "BLEU",
        "BLEU",
        "words and sequences of up to four words shared with the reference, 0 to 100",
    ),
    "bleu_lowercase": Metric(
        "BLEU, lower-cased",
        "BLEU",
        "BLEU of lower-cased text",
        {"lowercase": True},
        is_scored_by_length=False,
    ),
    "bleu_tutorial": Metric(
        "BLEU, tutorial",
        "BLEU",
        "lower-cased BLEU of spaCy's words, to compare with PyTorch's tutorial and nothing else",
        {"lowercase": True, "tokenize": "none", "force": True},
        is_scored_by_length=False,
    ),
    "chrf": Metric(
        "chrF2",
        "CHRF",
        "sequences of up to six characters shared with the reference, 0 to 100",
    ),
    "ter": Metric(
        "TER",
        "TER",
        "edits and moves per 100 words of the reference; less is better",
        is_lower_better=True,
    ),
    "exact": Metric(
        "exact match",
        "edits",
        "translations of 100 that are equal to the reference",
        {"unit": "sentence"},
    ),
    "cer": Metric(
        "CER",
        "edits",
        "edits per 100 characters of the reference; less is better",
        {"unit": "character"},
        is_lower_better=True,
    ),
    "wer": Metric(
        "WER",
        "edits",
        "edits per 100 words of the reference; less is better",
        {"unit": "word"},
        is_lower_better=True,
    ),
}
_OWN = Axis("", "metric {name!r}", "metric", "seq2seq_attn.metrics.edits:OwnMetric")
DEFAULT_METRICS = ("bleu", "bleu_lowercase", "bleu_tutorial", "chrf")


def find_metric(name: str) -> Metric:
    """Return a metric by its name, `MODULE:CLASS` for a metric of an imported module. Such a metric
    is added to `METRICS`.

    Raises:
        UsageError: there is no such metric.
        UserError: sacreBLEU, which every metric needs, is not installed.
    """
    require("train", "sacrebleu")
    if name not in METRICS:
        if ":" not in name:
            raise UsageError(f"metric {name!r}: not one of {', '.join(METRICS)}, or MODULE:CLASS")
        kind: Any = find_build(_OWN, name)
        METRICS[name] = Metric(kind.title, kind, kind.about, is_lower_better=kind.is_lower_better)
    return METRICS[name]
