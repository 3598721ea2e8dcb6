"""Find facts about the lines of a training text that translation needs: whether a line is one
sentence, and how much shorter than its source a target may be."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from seq2seq_attn.text.sentences import split_sentences

NUM_LINES = 2_000
"""number of lines, at equal distances in the text, that are searched for sentences"""
_MIN_SINGLE = 0.8
"""Lines are single sentences if more than this share of them is one sentence that ends with a mark;
0.95 to 0.99 of Multi30k and 0.91 of Europarl are."""
_SHORT = 0.9995
"""share of the training pairs whose targets do not count as too short"""
_WARNING = "shorter than in the training text: a part of the text may be missing"
_FEWER = "fewer sentences than in the line: a part of the text may be missing"
_Ratio = Annotated[float, Field(ge=0.0, le=1e6)]


class LineFacts(BaseModel, frozen=True):
    """Facts about the lines of a run's training text. The defaults give no warning and split no
    line."""

    one_sentence: bool = False
    """whether a source line is one sentence of plain text"""
    ratio: _Ratio = 0.0
    """size of the target per size of the source (`text_size`)"""
    shortness: _Ratio = 0.0
    """by how much a target may be smaller than `ratio` times its source, per square root of the
    size of the source. The deviation grows with the square root (Gale and Church 1993)."""

    def warnings(self, source: Sequence[str], target: Sequence[str]) -> tuple[str, ...]:
        """Return a warning if the target tokens are too short a translation of the source
        tokens."""
        size = text_size(source)
        is_short = text_size(target) < self.ratio * size - self.shortness * math.sqrt(size)
        return (_WARNING,) if is_short else ()

    def lost_sentences(self, line: str, translation: str) -> tuple[str, ...]:
        """Return a warning if a translation has fewer sentences than its line. Only a run that was
        trained on lines of one sentence gives it."""
        has_fewer = len(split_sentences(translation)) < len(split_sentences(line))
        return (_FEWER,) if self.one_sentence and has_fewer else ()


def text_size(tokens: Sequence[str]) -> int:
    """Return the number of bytes of the tokens, plus one byte per token. The number of tokens would
    be a worse measure, because rare words have many subwords."""
    return len("\n".join([*tokens, ""]).encode())


def find_line_facts(
    lines: Iterable[str], source_sizes: npt.NDArray[Any], target_sizes: npt.NDArray[Any]
) -> LineFacts:
    """Return the facts about a training text. The sizes are those of `text_size`.

    Args:
        lines: a sample of the source lines; empty if the source lines are not plain text.
        source_sizes: [pairs], size of each source.
        target_sizes: [pairs], size of each target.
    """
    if not source_sizes.all():
        return LineFacts()  # a language model has no source
    # A single sentence, written twice, is two sentences. A title, written twice, is no sentence
    # that ends, and so the number stays 1.
    counts = [len(split_sentences(f"{line} {line}")) for line in lines]
    ratio = target_sizes.sum() / source_sizes.sum()
    shortness = np.quantile((ratio * source_sizes - target_sizes) / np.sqrt(source_sizes), _SHORT)
    return LineFacts(
        one_sentence=counts.count(2) > _MIN_SINGLE * len(counts),
        ratio=ratio,
        shortness=max(0.0, shortness),
    )
