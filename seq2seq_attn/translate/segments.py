"""Split lines into segments for a model, batch the segments, and join their translations.

Lines are read in chunks, so that files of any size fit in memory. A segment is the text that the
model translates at once: a line, a sentence of a line, or a piece of a long sentence. A line may
have several sources (`data.sources`), separated by tabs; each is a column of the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from seq2seq_attn.text.languages import separates_words
from seq2seq_attn.text.scripts import UNSPACED_SENTENCES, usual_script
from seq2seq_attn.text.tokenizers.several import join_columns
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.text.vocab import UNK
from seq2seq_attn.translate.translation import EOS_TOKEN, Translation

if TYPE_CHECKING:
    from seq2seq_attn.translate.terms import Terms
    from seq2seq_attn.translate.translator import Translator

# Lines are sorted by length and batched within a chunk. A chunk ends at the first of these limits.
CHUNK_LINES = 2_048
CHUNK_CHARACTERS = 1 << 20
# The product of this number and the batch size limits the padded source positions of a batch, so
# that a batch holds fewer long sentences.
_POSITIONS_PER_SENTENCE = 40
MAX_ATTENTION_CELLS = 1_000_000
"""maximum size of the attention matrix of a line of several segments (4 MB); above it, the line has
links but no attention matrix"""

SplitLines = Sequence[Sequence[str]]
"""the sentences of each line"""
ResultT = TypeVar("ResultT")


class Segment(NamedTuple):
    """A line, a sentence or a piece of a sentence that is translated at once."""

    line: str
    """the whole line that the segment belongs to"""
    source: list[str]
    """source tokens of the segment"""
    ids: list[int]
    """ids of the source tokens"""
    target: Sequence[str]
    """target tokens that the translation begins with; all target tokens in forced decoding"""
    separator: str = ""
    """white space between the translations of the previous segment and of this segment"""


def unknown_positions(segment: Segment, tokenizer: Source) -> tuple[int, ...]:
    """Return the positions of source tokens that are not in the vocabulary. The position of a
    vector never counts as unknown."""
    vectors = tokenizer.vector_positions(segment.source)
    unknown = []
    for position, token_id in enumerate(segment.ids):
        if token_id == UNK and position not in vectors:
            unknown.append(position)
    return tuple(unknown)


def check_lines(lines: Iterable[str], name: str, call: str) -> list[str]:
    """Return the lines as a list.

    Args:
        name: name of the argument that holds the lines, for error messages.
        call: the call to write instead if `lines` is a single string, for the error message.

    Raises:
        TypeError: `lines` is a single string, or a line is not a string.
    """
    if isinstance(lines, str | bytes):
        raise TypeError(f"{name}: expected a list of lines, got one string; write {call}")
    listed = list(lines)
    for index, line in enumerate(listed):
        if not isinstance(line, str):
            raise TypeError(
                f"{name}[{index}]: expected a string, got {type(line).__name__} {line!r}"
            )
    return listed


def chunks(lines: Iterable[str], *, num_results: int = 1) -> Iterator[list[str]]:
    """Yield consecutive lines in chunks, whose segments are sorted and batched together.

    The more results (`num_results`) each line has, the smaller the chunks are.
    """
    max_lines = CHUNK_LINES // num_results
    max_characters = CHUNK_CHARACTERS // num_results
    chunk = []
    num_characters = 0
    for line in lines:
        chunk.append(line)
        num_characters += len(line)
        if len(chunk) >= max_lines or num_characters >= max_characters:
            yield chunk
            chunk = []
            num_characters = 0
    if chunk:
        yield chunk


def split_lines(
    translator: Translator, lines: SplitLines, terms: Terms | None = None
) -> list[list[Segment]]:
    """Return the segments of each line. Neighbouring sentences that share a source term of `terms`
    are joined again. Each sentence is a segment, and one that is too long is cut into pieces. A
    blank line has no segments.

    If target tokens are source positions, no sentence is cut, because the positions count from the
    start of the line.
    """
    source = translator.source_tokenizer
    language = translator.languages[1]
    within_sentence = " " if separates_words(language) else ""
    has_spaces = usual_script(language) not in UNSPACED_SENTENCES  # between sentences
    if terms is not None:
        lines = list(map(terms.join_split, lines))
    tokenized = iter(source.tokenize_many(list(chain.from_iterable(lines))))
    segments_by_line = []
    for sentences in lines:
        line = "".join(sentences)
        segments = []
        separator = ""
        for sentence in sentences:
            pieces = [next(tokenized)]
            if not translator.target_tokenizer.has_positions:
                pieces = source.segments(pieces[0], translator.max_source_length)
            for tokens in filter(None, pieces):
                ids = translator.source_vocab.ids_of(tokens)
                segments.append(Segment(line, tokens, ids, [], separator))
                separator = within_sentence
            separator = ""
            if has_spaces:
                separator = sentence[len(sentence.rstrip()) :] or " "
        segments_by_line.append(segments)
    return segments_by_line


def map_in_batches(
    make: Callable[[list[Segment]], Iterable[ResultT]],
    segments: Sequence[Segment],
    batch_size: int,
) -> list[ResultT]:
    """Apply `make` to batches of segments of similar length.

    `make` returns a result for each segment. The results are returned in the order of `segments`.
    """
    lengths = [max(len(segment.source), len(segment.target)) for segment in segments]
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        size = len(batches[-1]) + 1 if batches else 0
        num_positions = size * lengths[index]
        is_full = size > batch_size or num_positions > batch_size * _POSITIONS_PER_SENTENCE
        if is_full or not batches:
            batches.append([])
        batches[-1].append(index)
    results: dict[int, ResultT] = {}
    for batch in batches:
        batch_results = make([segments[index] for index in batch])
        results.update(zip(batch, batch_results, strict=True))
    return [results[index] for index in range(len(segments))]


def distinct(translations: Sequence[Translation]) -> list[Translation]:
    """Return the first translation with each token sequence."""
    by_tokens: dict[tuple[str, ...], Translation] = {}
    for translation in translations:
        by_tokens.setdefault(tuple(translation.tokens), translation)
    return list(by_tokens.values())


def empty_translation(has_attention: bool) -> Translation:
    """Return the translation of a blank line, which has no tokens."""
    return Translation(
        text="",
        tokens=[],
        score=0.0,
        log_prob=0.0,
        source_tokens=[EOS_TOKEN],
        attention=np.zeros((0, 1), dtype=np.float32) if has_attention else None,
        is_finished=True,
        heaviest=[] if has_attention else None,
    )


def join_n_best(segments: Sequence[Sequence[Translation]], source: Source) -> list[Translation]:
    """Join the n-best translations of a line's segments into the n-best translations of the line.

    The i-th translation of the line joins the i-th translation of each segment. A segment with
    fewer translations contributes its last translation.
    """
    joined = []
    for rank in range(max(map(len, segments))):
        ranked = [translations[min(rank, len(translations) - 1)] for translations in segments]
        joined.append(join_translations(ranked, source))
    return joined


def join_translations(segments: Sequence[Translation], source: Source) -> Translation:
    """Join the translations of a line's segments into the translation of the line.

    Each text begins with its separator, and scores are added. The attention is block-diagonal,
    except that all segments share one column for the end of each source.
    """
    if len(segments) == 1:
        return segments[0]
    source_tokens, positions = _join_sources(segments, source)
    tokens: list[str] = []
    heaviest: list[int] = []
    unknown_positions: list[int] = []
    for segment, segment_positions in zip(segments, positions, strict=True):
        tokens += segment.tokens
        heaviest += [segment_positions[index] for index in segment.heaviest or []]
        unknown_positions += [segment_positions[index] for index in segment.unknown_positions]
    return Translation(
        text="".join(segment.text for segment in segments).strip(),
        tokens=tokens,
        score=sum(segment.score for segment in segments),
        log_prob=sum(segment.log_prob for segment in segments),
        source_tokens=source_tokens,
        attention=_join_attention(segments, positions, len(source_tokens)),
        is_finished=all(segment.is_finished for segment in segments),
        heaviest=None if any(segment.heaviest is None for segment in segments) else heaviest,
        is_cut=any(segment.is_cut for segment in segments),
        unknown_positions=tuple(sorted(unknown_positions)),
        warnings=tuple(chain.from_iterable(segment.warnings for segment in segments)),
    )


def _join_sources(
    segments: Sequence[Translation], source: Source
) -> tuple[list[str], list[list[int]]]:
    """Join the source tokens of a line's segments, column by column.

    Returns:
        The source tokens of the line.
        For each segment, the positions of its source tokens in the line. All segments share the
        position of the token that ends a column.
    """
    columns_by_segment = [source.columns(segment.source_tokens[:-1]) for segment in segments]
    columns = []
    positions: list[list[int]] = [[] for _ in segments]
    end = -1
    for segment_columns in zip(*columns_by_segment, strict=True):
        start = end + 1
        column: list[str] = []
        for tokens, segment_positions in zip(segment_columns, positions, strict=True):
            first = start + len(column)
            segment_positions += range(first, first + len(tokens))
            column += tokens
        end = start + len(column)
        for segment_positions in positions:
            segment_positions.append(end)
        columns.append(column)
    return [*join_columns(columns), EOS_TOKEN], positions


def _join_attention(
    segments: Sequence[Translation], positions: Sequence[Sequence[int]], num_source: int
) -> npt.NDArray[np.float32] | None:
    """Join the attention of a line's segments, [T, S].

    Returns None if a segment has no attention or the matrix exceeds `MAX_ATTENTION_CELLS`.
    """
    blocks = [segment.attention for segment in segments if segment.attention is not None]
    if len(blocks) < len(segments):
        return None
    heights = [len(segment.tokens) for segment in segments]
    heights[-1] = len(blocks[-1])  # only the last segment keeps its row of EOS
    num_target = sum(heights)
    if num_target * num_source > MAX_ATTENTION_CELLS:
        return None
    joined_TS = np.zeros((num_target, num_source), dtype=np.float32)
    top = 0
    for block_TS, height, segment_positions in zip(blocks, heights, positions, strict=True):
        joined_TS[top : top + height, segment_positions] = block_TS[:height]
        top += height
    return joined_TS
