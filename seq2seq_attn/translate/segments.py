"""Lines on their way to a model and back: chunks of lines, segments of a line, batches of segments,
joined results."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from seq2seq_attn.text.tokenizers.several import join_columns
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.translate.translation import EOS_TOKEN, Translation

# Lines are sorted by length and batched within a chunk of this size, whichever limit comes first.
CHUNK_LINES = 2_048
CHUNK_CHARACTERS = 1 << 20
# A batch has at most this many source positions per sentence of the batch size, so fewer long
# sentences fit.
_POSITIONS_PER_SENTENCE = 40
MAX_ATTENTION_CELLS = 1_000_000
"""above this size (4 MB), a line of several segments has links but no attention matrix"""

ResultT = TypeVar("ResultT")


class Segment(NamedTuple):
    """The part of a line that is translated at once."""

    line: str
    source: list[str]
    """its tokens"""
    ids: list[int]
    """of these tokens"""
    target: Sequence[str]
    """tokens that its translation begins with; in forced decoding, all"""


def check_lines(lines: Iterable[str], name: str, call: str) -> list[str]:
    """The lines as a list. An error names the argument, and the call to write instead of one with a
    single string. Raises TypeError: a single string, or something else than strings."""
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
    """Consecutive lines in chunks that are sorted and batched together; the more results a line
    has, the smaller."""
    max_lines = CHUNK_LINES // num_results
    max_characters = CHUNK_CHARACTERS // num_results
    chunk: list[str] = []
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


def map_in_batches(
    make: Callable[[list[Segment]], Iterable[ResultT]],
    segments: Sequence[Segment],
    lengths: Sequence[int],
    batch_size: int,
) -> list[ResultT]:
    """Apply `make` to batches of segments of similar length. The results are in the order of the
    segments."""
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
        made = make([segments[index] for index in batch])
        results.update(zip(batch, made, strict=True))
    return [results[index] for index in range(len(segments))]


def empty_translation(has_attention: bool) -> Translation:
    """The translation of a blank line."""
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
    """Join the n-best translations of a line's segments: the i-th uses the i-th of each segment, or
    its last."""
    joined = []
    for rank in range(max(map(len, segments))):
        parts = [translations[min(rank, len(translations) - 1)] for translations in segments]
        joined.append(join_translations(parts, source))
    return joined


def join_translations(parts: Sequence[Translation], source: Source) -> Translation:
    """Join the translations of a line's segments: texts separated by spaces, scores added,
    attention block-diagonal with one common column for the end of each source."""
    if len(parts) == 1:
        return parts[0]
    source_tokens, positions = _join_sources(parts, source)
    tokens: list[str] = []
    heaviest: list[int] = []
    unknown: list[int] = []
    for part, part_positions in zip(parts, positions, strict=True):
        tokens += part.tokens
        heaviest += [part_positions[index] for index in part.heaviest or []]
        unknown += [part_positions[index] for index in part.unknown]
    return Translation(
        text=" ".join(part.text for part in parts if part.text),
        tokens=tokens,
        score=sum(part.score for part in parts),
        log_prob=sum(part.log_prob for part in parts),
        source_tokens=source_tokens,
        attention=_join_attention(parts, positions, len(source_tokens)),
        is_finished=all(part.is_finished for part in parts),
        heaviest=None if any(part.heaviest is None for part in parts) else heaviest,
        is_cut=any(part.is_cut for part in parts),
        unknown=tuple(sorted(unknown)),
    )


def _join_sources(
    parts: Sequence[Translation], source: Source
) -> tuple[list[str], list[list[int]]]:
    """The source tokens of the line, each column's segments in order, and for each segment the
    positions of its source tokens among them. The end of a column is common to all segments."""
    by_segment = [source.columns(part.source_tokens[:-1]) for part in parts]
    columns: list[list[str]] = []
    positions: list[list[int]] = [[] for _ in parts]
    end = -1
    for segments in zip(*by_segment, strict=True):
        start = end + 1
        column: list[str] = []
        for segment, segment_positions in zip(segments, positions, strict=True):
            first = start + len(column)
            segment_positions += range(first, first + len(segment))
            column += segment
        end = start + len(column)
        for segment_positions in positions:
            segment_positions.append(end)
        columns.append(column)
    return [*join_columns(columns), EOS_TOKEN], positions


def _join_attention(
    parts: Sequence[Translation], positions: Sequence[Sequence[int]], num_source: int
) -> npt.NDArray[np.float32] | None:
    blocks = [part.attention for part in parts if part.attention is not None]
    if len(blocks) < len(parts):
        return None
    heights = [len(part.tokens) for part in parts]
    heights[-1] = len(blocks[-1])  # with the row of EOS, which only the last segment keeps
    num_target = sum(heights)
    if num_target * num_source > MAX_ATTENTION_CELLS:
        return None
    joined_TS = np.zeros((num_target, num_source), dtype=np.float32)
    top = 0
    for block_TS, height, part_positions in zip(blocks, heights, positions, strict=True):
        joined_TS[top : top + height, part_positions] = block_TS[:height]
        top += height
    return joined_TS
