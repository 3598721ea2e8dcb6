"""The translation of a line, and how over-long lines are split into segments and their translations joined.

Shapes: T target positions, S source positions.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seq2seq_attn.text.tokenizers.base import SOURCE_END, SPACE
from seq2seq_attn.text.tokenizers.several import join_sources, split_sources
from seq2seq_attn.text.vocab import EOS, SPECIALS
from seq2seq_attn.translate.attention_map import AttentionMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EOS_TOKEN = SPECIALS[EOS]
MAX_ATTENTION_CELLS = 1_000_000
"""above this size (4 MB), a line of several segments has links but no attention matrix"""
_MAX_REPR = 60
"""characters of the text in `repr`"""
_SENTENCE_ENDS = (*".!?…。！？", SOURCE_END)


@dataclass(frozen=True, eq=False)
class Translation:
    """A translation of a line. A notebook shows its text and its attention."""

    text: str
    """detokenized; never holds a line break or another control character"""
    tokens: list[str]
    """target tokens without EOS; with `unk="copy"`, UNKs are already replaced"""
    score: float
    """the score that ranks hypotheses: log_prob / length ** length_penalty, with the length in target tokens including
    EOS; in a beam search, plus the coverage penalty; with `method="mbr"`, the expected chrF; for a line translated in
    segments, the sum over segments"""
    log_prob: float
    """natural logarithm of the translation's probability, EOS included"""
    source_tokens: list[str]
    """the source as the model saw it, `<eos>` last; a tab ends each of several sources but the last"""
    attention: npt.NDArray[np.float32] | None
    """weights [T, S]: a row for each of `tokens`, and one for EOS if the translation ended with it; a column for each
    of `source_tokens`. None for a model without attention over source positions, and for a line of several segments
    above `MAX_ATTENTION_CELLS`"""
    is_finished: bool
    """it ended with EOS"""
    heaviest: list[int] | None
    """argmax of the attention: the source position with the highest weight for each of `tokens`; None without
    attention"""
    is_cut: bool = False
    """the length limit cut this translation, or another hypothesis with a higher score"""
    unknown: tuple[int, ...] = ()
    """positions of the source tokens outside the run's vocabulary"""

    def links(self) -> list[tuple[int, int]]:
        """The hard alignment: (source position, target position) of each token's highest weight, in target order.
        Tokens with their highest weight on the end of a source have no link.

        Raises:
            ValueError: there is no attention.
        """
        if self.heaviest is None:
            raise ValueError("no attention over source positions, so no links")
        ends = {position for position, token in enumerate(self.source_tokens[:-1]) if token == SOURCE_END}
        ends.add(len(self.source_tokens) - 1)
        return [(source, target) for target, source in enumerate(self.heaviest) if source not in ends]

    def attention_map(self) -> AttentionMap | None:
        """The attention with its tokens as labels; None without attention or tokens."""
        if self.attention is None or not self.tokens:
            return None
        return AttentionMap.of(self.source_tokens, self.tokens, self.attention, self.unknown)

    def plot(self) -> Figure:
        """A figure with the attention as a heat map: `plot().savefig("map.pdf")`.

        Raises:
            ValueError: there is no attention to draw.
        """
        from seq2seq_attn.translate.heat_maps import attention_figure

        map = self.attention_map()
        return attention_figure([] if map is None else [map], [self.text])

    def __repr__(self) -> str:
        shape = "none" if self.attention is None else " x ".join(map(str, self.attention.shape))
        return f"Translation({_shortened(self.text)!r}, log_prob={self.log_prob:.2f}, attention: {shape})"

    def _repr_html_(self) -> str:
        """The text and the attention, for a notebook."""
        map = self.attention_map()
        return f"<p>{html.escape(self.text)}</p>" + ("" if map is None else map._repr_html_())


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_REPR else f"{text[:_MAX_REPR]}..."


def distinct(translations: Sequence[Translation]) -> list[Translation]:
    """The first of each token sequence: hypotheses may become equal when unknown tokens are replaced."""
    first: dict[tuple[str, ...], Translation] = {}
    for translation in translations:
        first.setdefault(tuple(translation.tokens), translation)
    return [*first.values()]


def empty_translation(has_attention: bool) -> Translation:
    """The translation of a blank line."""
    attention = np.zeros((0, 1), dtype=np.float32) if has_attention else None
    return Translation("", [], 0.0, 0.0, [EOS_TOKEN], attention, True, [] if has_attention else None)


def split_source(tokens: Sequence[str], max_length: int) -> list[list[str]]:
    """Split tokens into segments of at most `max_length`. A segment ends after the last sentence end in its second
    half, else before the last token there that starts a word, else at its maximum length."""
    segments = []
    start = 0
    while len(tokens) - start > max_length:
        stop = _break(tokens, start, start + max_length)
        segments.append(list(tokens[start:stop]))
        start = stop
    return [*segments, list(tokens[start:])]


def split_line(tokens: Sequence[str], max_length: int, num_sources: int) -> list[list[str]]:
    """`split_source` for any number of sources. Several sources, of which one is too long, are cut into the same
    number of parts of equal length, because there are no links that tell which parts belong together."""
    if num_sources == 1:
        return split_source(tokens, max_length)
    sources = split_sources(tokens)
    num_segments = max(len(split_source(source, max_length)) for source in sources)
    return [
        join_sources(
            [source[k * len(source) // num_segments : (k + 1) * len(source) // num_segments] for source in sources]
        )
        for k in range(num_segments)
    ]


def _break(tokens: Sequence[str], start: int, full: int) -> int:
    stops = range(full, start + (full - start) // 2, -1)
    after_sentence = (stop for stop in stops if tokens[stop - 1].endswith(_SENTENCE_ENDS))
    before_word = (stop for stop in stops if tokens[stop].startswith(SPACE))
    return next(after_sentence, None) or next(before_word, full)


def join_translations(parts: Sequence[Translation], num_sources: int = 1) -> Translation:
    """Join the translations of a line's segments: texts separated by spaces, scores added, attention block-diagonal
    with one common column for the end of each source."""
    if len(parts) == 1:
        return parts[0]
    source_tokens, positions = _join_sources(parts, num_sources)
    heaviest = [
        of_part[position] for part, of_part in zip(parts, positions, strict=True) for position in part.heaviest or []
    ]
    return Translation(
        text=" ".join(part.text for part in parts if part.text),
        tokens=[token for part in parts for token in part.tokens],
        score=sum(part.score for part in parts),
        log_prob=sum(part.log_prob for part in parts),
        source_tokens=source_tokens,
        attention=_join_attention(parts, positions, len(source_tokens)),
        is_finished=all(part.is_finished for part in parts),
        heaviest=None if any(part.heaviest is None for part in parts) else heaviest,
        is_cut=any(part.is_cut for part in parts),
        unknown=tuple(
            sorted(of_part[index] for part, of_part in zip(parts, positions, strict=True) for index in part.unknown)
        ),
    )


def join_n_best(segments: Sequence[Sequence[Translation]], num_sources: int = 1) -> list[Translation]:
    """Join the n-best translations of a line's segments: the i-th uses the i-th of each segment, or its last."""
    num_translations = max(len(translations) for translations in segments)
    return [
        join_translations([translations[min(rank, len(translations) - 1)] for translations in segments], num_sources)
        for rank in range(num_translations)
    ]


def _join_sources(parts: Sequence[Translation], num_sources: int) -> tuple[list[str], list[list[int]]]:
    """The source tokens of the line, each source's segments in order, and for each segment the positions of its source
    tokens among them."""
    texts = [part.source_tokens[:-1] for part in parts]
    of_parts = [[text] if num_sources == 1 else split_sources(text) for text in texts]
    tokens: list[str] = []
    positions: list[list[int]] = [[] for _ in parts]
    for segments in zip(*of_parts, strict=True):  # of one source
        for of_part, segment in zip(positions, segments, strict=True):
            of_part += range(len(tokens), len(tokens) + len(segment))
            tokens += segment
        for of_part in positions:
            of_part.append(len(tokens))
        tokens.append(SOURCE_END)
    return [*tokens[:-1], EOS_TOKEN], positions


def _join_attention(
    parts: Sequence[Translation], positions: Sequence[Sequence[int]], num_source: int
) -> npt.NDArray[np.float32] | None:
    blocks = [part.attention for part in parts if part.attention is not None]
    # only the last segment's EOS row is kept, as the line's
    heights = [len(part.tokens) for part in parts[:-1]] + [len(block) for block in blocks[-1:]]
    shape = (sum(heights), num_source)
    if len(blocks) < len(parts) or shape[0] * shape[1] > MAX_ATTENTION_CELLS:
        return None
    joined_TS = np.zeros(shape, dtype=np.float32)
    top = 0
    for block_TS, height, of_part in zip(blocks, heights, positions, strict=True):
        joined_TS[top : top + height, of_part] = block_TS[:height]
        top += height
    return joined_TS
