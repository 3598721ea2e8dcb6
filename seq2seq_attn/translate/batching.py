"""Batch lines for inference: in chunks, sorted by length, as tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import numpy as np
from torch import nn

from seq2seq_attn.runtime.memory import explain_memory_error
from seq2seq_attn.text.tokenizers.base import SOURCE_END, Tokenizer
from seq2seq_attn.text.tokenizers.several import find_vector_source, vector_positions
from seq2seq_attn.text.tokenizers.vectors import FloatArray, read_token_vectors
from seq2seq_attn.text.vocab import UNK, Vocab

# Lines are sorted by length and batched within a chunk of this size, whichever limit comes first.
_CHUNK_LINES = 2_048
_CHUNK_CHARACTERS = 1 << 20
# A batch has at most this many source positions per sentence of the batch size, so fewer long sentences fit.
_POSITIONS_PER_SENTENCE = 40


def suggest_smaller_batch(batch_size: int) -> AbstractContextManager[None]:
    """Turn an out-of-memory error into one that names the option to lower."""
    return explain_memory_error(f"--batch-size {batch_size}", f"try --batch-size {max(1, batch_size // 2)}")


@contextmanager
def eval_mode(model: object) -> Iterator[None]:
    """Put a model into evaluation mode for the block (no dropout), then back into its former mode."""
    was_training = isinstance(model, nn.Module) and model.training
    if isinstance(model, nn.Module) and was_training:
        model.eval()
    try:
        yield
    finally:
        if isinstance(model, nn.Module) and was_training:
            model.train()


def list_of_lines(lines: Iterable[str], name: str, call: str) -> list[str]:
    """The lines as a list. An error names the argument, and the call to write instead of one with a single string.

    Raises:
        TypeError: a single string, or something else than strings.
    """
    if isinstance(lines, str | bytes):
        raise TypeError(f"{name}: expected a list of lines, got one string; write {call}")
    listed = list(lines)
    for index, line in enumerate(listed):
        if not isinstance(line, str):
            raise TypeError(f"{name}[{index}]: expected a string, got {type(line).__name__} {line!r}")
    return listed


def chunks(lines: Iterable[str], *, num_results: int = 1) -> Iterator[list[str]]:
    """Consecutive lines in chunks that are sorted and batched together; the more results a line has, the smaller."""
    max_lines, max_characters = _CHUNK_LINES // num_results, _CHUNK_CHARACTERS // num_results
    chunk: list[str] = []
    num_characters = 0
    for line in lines:
        chunk.append(line)
        num_characters += len(line)
        if len(chunk) >= max_lines or num_characters >= max_characters:
            yield chunk
            chunk, num_characters = [], 0
    if chunk:
        yield chunk


def batches_by_length(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Indices of all segments, sorted by length, in batches."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        is_full = len(batch) >= batch_size
        if batch and (is_full or (len(batch) + 1) * lengths[index] > batch_size * _POSITIONS_PER_SENTENCE):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def read_line_vectors(
    lines: Iterable[str], tokens: Iterable[Sequence[str]], tokenizer: Tokenizer
) -> list[FloatArray] | None:
    """For each line with these source tokens, the vectors at their positions, [tokens, F], 0 where a token is of text;
    None if all sources are texts.

    Raises:
        UserError: a file has changed since it was tokenized.
    """
    source = find_vector_source(tokenizer)
    if source is None:
        return None
    line_vectors = []
    for line, line_tokens in zip(lines, tokens, strict=True):
        rows = np.zeros((len(line_tokens), source[1]), dtype=np.float32)
        if at := vector_positions(line_tokens, tokenizer):
            file = line.split(SOURCE_END)[source[0]].strip()
            rows[at.start : at.stop] = read_token_vectors(file, line_tokens[at.start : at.stop])
        line_vectors.append(rows)
    return line_vectors


def unknown_positions(tokens: Sequence[str], vocab: Vocab, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The positions of tokens outside the vocabulary. A vector is known whatever its number."""
    known = vector_positions(tokens, tokenizer)
    ids = vocab.ids_of(tokens)
    return tuple(position for position, i in enumerate(ids) if i == UNK and position not in known)
