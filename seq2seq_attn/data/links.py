"""Links between the tokens of training pairs, for objectives that learn from word alignments (`data.links`).

They are the embedded corpus's gold links, come from a Pharaoh file, or are estimated by IBM model 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_attn.config import DataConfig, shorten
from seq2seq_attn.data.id_store import IdStore, IdWriter
from seq2seq_attn.data.store import links_prefix
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import sha256_of
from seq2seq_attn.text import ibm1
from seq2seq_attn.text.captions import tokenize_caption
from seq2seq_attn.text.corpus import count_lines, iter_lines
from seq2seq_attn.text.links import Link, links_between_tokens, parse_pharaoh, words_of
from seq2seq_attn.text.tokenizers.base import SIDES, Tokenizer

GOLD = "gold"
IBM1 = "ibm1"
_PAIRS_AT_ONCE = 4_096


def links_file(data: DataConfig) -> Path | None:
    """The Pharaoh file named by `data.links`, if any.

    Raises:
        UsageError: gold links are requested for a corpus without any.
        UserError: there is no such file.
    """
    if data.links == GOLD and data.corpus != "captions":
        raise UsageError(
            f"data.links=gold: data.corpus={data.corpus} has no gold links; name a Pharaoh file of its training pairs,"
            f" or take {IBM1}"
        )
    if data.links in (None, GOLD, IBM1):
        return None
    if not os.path.isfile(data.links):  # false for a name that is too long, too
        raise UserError(
            f"data.links={shorten(data.links)}: no such file; name a Pharaoh file of training pairs, {GOLD} or {IBM1}"
        )
    return Path(data.links)


def links_identity(data: DataConfig) -> dict[str, Any]:
    """The part of the folder's hash that depends on the links; empty without links.

    Raises:
        UsageError, UserError: as `links_file`.
    """
    path = links_file(data)
    if path is not None:
        return {"links": sha256_of(path)}
    if data.links == IBM1:
        return {"links": {"name": IBM1, "num_iterations": ibm1.NUM_ITERATIONS, "max_cells": ibm1.MAX_CELLS}}
    return {} if data.links is None else {"links": data.links}


def word_splitter(data: DataConfig) -> Callable[[str], list[str]]:
    """The function that splits text into the words that links number: at spaces and tabs, as aligners do, or for
    gold links as the embedded corpus does."""
    if data.links != GOLD:
        return words_of
    return tokenize_caption


def check_num_links(path: Path, num_pairs: int) -> None:
    """Raises UserError unless the file has one line per training pair."""
    num_lines = count_lines(path)
    if num_lines != num_pairs:
        raise UserError(
            f"{path} has {num_lines} lines, but there are {num_pairs} training pairs; line i must align pair i"
        )


def parse_links(path: Path, number: int, line: str, num_source: int, num_target: int) -> tuple[Link, ...]:
    """The links of a line, for a pair with these numbers of words.

    Raises:
        UserError: the line is not in Pharaoh format, or a link lies outside the pair.
    """
    try:
        links = parse_pharaoh(line)
    except UserError as error:
        raise UserError(f"{path}, line {number}: {error}") from None
    for source, target in links:
        if source >= num_source or target >= num_target:
            raise UserError(
                f"{path}, line {number}: link {source}-{target} lies outside a pair of {num_source} and {num_target} "
                "words; split words at spaces and tabs only, number them from 0, and write the source first"
            )
    return links


def write_pharaoh_links(
    directory: Path,
    path: Path,
    kept: Iterable[bool],
    tokenizers: Sequence[Tokenizer],
    words: Callable[[str], list[str]],
) -> str:
    """Convert a Pharaoh file to links between tokens and write them next to the training text in `directory`. Returns a
    note for the user.

    Args:
        directory: the prepared corpus being built.
        path: one line for each training pair that was read.
        kept: for each of these pairs, whether it is in `directory`.
        tokenizers: of source and target.
        words: splits a text into the words that the links number.

    Raises:
        UserError: as `parse_links`, or there is no link at all.
    """
    numbered = zip(enumerate(iter_lines(path), 1), kept, strict=True)
    lines = (line for line, is_kept in numbered if is_kept)
    sources, targets = (iter_lines(directory / f"train.{side}.txt") for side in SIDES)
    pairs = zip(lines, sources, targets, strict=True)
    writer = IdWriter(links_prefix(directory, "train"))
    num_links = num_unlike = 0
    while block := list(islice(pairs, _PAIRS_AT_ONCE)):
        texts = [source for _, source, _ in block], [target for _, _, target in block]
        tokens = [tokenizer.tokenize_many(of_side) for tokenizer, of_side in zip(tokenizers, texts, strict=True)]
        token_links = []
        for ((number, line), *texts_of_pair), *tokens_of_pair in zip(block, *tokens, strict=True):
            words_of_pair = [words(text) for text in texts_of_pair]
            links = parse_links(path, number, line, *map(len, words_of_pair))
            try:
                token_links.append(links_between_tokens(links, *words_of_pair, *tokens_of_pair))
            except ValueError:  # a tokenizer that drops or replaces characters
                token_links.append([])
                num_unlike += 1
        num_links += _append(writer, token_links)
    without = (
        f"; {num_unlike:,} pairs have none: their tokens are not the same text as their words" if num_unlike else ""
    )
    if not num_links:
        raise UserError(
            f"data.links: {path} has no link between tokens of training pairs; expected lines such as 0-0 1-2{without}"
        )
    writer.finish()
    return f"links: {num_links:,} between tokens of training pairs, from {path.name}{without}"


def write_estimated_links(directory: Path) -> str:
    """Write links between the tokens of the training pairs in `directory` as estimated by IBM model 1. Returns a note
    for the user."""
    source, target = (IdStore(directory / f"train.{side}") for side in SIDES)
    writer = IdWriter(links_prefix(directory, "train"))
    aligned = ibm1.align(source.__getitem__, target.__getitem__, len(source))
    num_links = 0
    while block := list(islice(aligned, _PAIRS_AT_ONCE)):
        num_links += _append(writer, block)
    writer.finish()
    return f"links: {num_links:,} between tokens of training pairs, by IBM model 1 in both directions"


def _append(writer: IdWriter, links: Sequence[Sequence[Link]]) -> int:
    """Write the links of the next pairs and return their number."""
    writer.add_lengths(np.array([2 * len(of_pair) for of_pair in links]))
    writer.add_ids(np.array([position for of_pair in links for link in of_pair for position in link], dtype=np.int32))
    return sum(map(len, links))
