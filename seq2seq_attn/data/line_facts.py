"""Facts about the lines of a training text that translation needs: whether a line is one sentence,
and how short translations are."""

import math
from collections.abc import Iterable
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from seq2seq_attn.text.sentences import split_sentences

NUM_LINES = 2_000
"""number of lines, at equal distances in the text, that are searched for sentences"""
_MAX_SEVERAL = 0.1
"""Lines are single sentences if at most this share of them has several."""
_MIN_ENDED = 0.5
"""Lines are sentences, not words or titles, if more than this share of them ends with a mark."""
_SHORT = 0.999
"""quantile of the training pairs above which a translation counts as too short"""
_Ratio = Annotated[float, Field(ge=0.0, le=1e6)]


class LineFacts(BaseModel, frozen=True):
    """What a run keeps about the lines of its training text. By default, nothing is known."""

    one_sentence: bool = False
    """whether a source line is one sentence of plain text"""
    ratio: _Ratio = 0.0
    """target tokens per source token"""
    shortness: _Ratio = 0.0
    """how much shorter than `ratio` translations are, in target tokens per square root of the
    source tokens; the deviation grows with the square root (Gale and Church 1993)"""

    def warnings(self, num_source: int, num_target: int) -> tuple[str, ...]:
        """Return a warning if a translation of `num_source` tokens into `num_target` tokens is
        shorter than those of the training text; else nothing."""
        least = self.ratio * num_source - self.shortness * math.sqrt(num_source)
        if num_target >= least:
            return ()
        return (
            f"{num_source} source tokens became {num_target}, and at least {math.ceil(least)} in "
            "the training text: a part of the text may be missing",
        )


def find_line_facts(
    lines: Iterable[str], source_lengths: npt.NDArray[Any], target_lengths: npt.NDArray[Any]
) -> LineFacts:
    """Return the facts about a training text.

    Args:
        lines: some source lines; none if they are not plain text.
        source_lengths: number of source tokens of each pair.
        target_lengths: number of target tokens of each pair.
    """
    if not source_lengths.all():
        return LineFacts()  # a language model has no source
    # A line written twice is two sentences, unless it has several or does not end as a sentence.
    counts = [len(split_sentences(f"{line} {line}")) for line in lines]
    num_several = len(counts) - counts.count(1) - counts.count(2)
    is_single = counts.count(2) > _MIN_ENDED * len(counts)
    is_single &= num_several <= _MAX_SEVERAL * len(counts)
    ratio = target_lengths.sum() / source_lengths.sum()
    shortness = (ratio * source_lengths - target_lengths) / np.sqrt(source_lengths)
    quantile = max(0.0, np.quantile(shortness, _SHORT))
    return LineFacts(one_sentence=is_single, ratio=ratio, shortness=quantile)
