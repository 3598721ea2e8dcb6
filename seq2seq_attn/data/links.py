"""Links between the tokens of training pairs, for objectives that learn from word alignments
(`data.links`).

They are the embedded corpus's gold links, come from a Pharaoh file, or are estimated by IBM model
1.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, islice
from pathlib import Path

import numpy as np

from seq2seq_attn.config import DataConfig, shorten
from seq2seq_attn.data.store import (
    SequenceStore,
    SequenceWriter,
    TokenStore,
    iter_exact,
    split_path,
)
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import sha256_of
from seq2seq_attn.text import ibm1
from seq2seq_attn.text.captions import tokenize_caption
from seq2seq_attn.text.links import Link, links_between_tokens, parse_pharaoh, words_of
from seq2seq_attn.text.tokenizers.base import SIDES

GOLD, IBM1 = "gold", "ibm1"
LINKS = "links"
"""the kind of the lines that come from a Pharaoh file"""
WORDS = {GOLD: tokenize_caption, LINKS: words_of}
"""the words that links number, by kind"""
LinkFiles = Mapping[str, Mapping[str, Path]]
"""the files of word alignments, by split and kind"""
_PAIRS_AT_ONCE = 4_096


def links_file(data: DataConfig) -> Path | None:
    """The Pharaoh file named by `data.links`, if any.

    Raises:
        UsageError: gold links are requested for a corpus without any.
        UserError: there is no such file.
    """
    if data.links == GOLD and data.corpus != "captions":
        raise UsageError(
            f"data.links=gold: data.corpus={data.corpus} has no gold links; name a Pharaoh file of "
            f"its training pairs, or take {IBM1}"
        )
    if data.links in (None, GOLD, IBM1):
        return None
    if not os.path.isfile(data.links):  # false for a name that is too long, too
        raise UserError(
            f"data.links={shorten(data.links)}: no such file; name a Pharaoh file of training "
            f"pairs, {GOLD} or {IBM1}"
        )
    return Path(data.links)


def find_links(data: DataConfig, gold: Mapping[str, Path]) -> LinkFiles:
    """The files of gold alignments, and the Pharaoh file of the training pairs."""
    files = {split: {GOLD: path} for split, path in gold.items()}
    path = links_file(data)
    if path is not None:
        files.setdefault("train", {})[LINKS] = path
    return files


def links_identity(data: DataConfig) -> str | None:
    """The part of the folder's hash that depends on the links; None without links. Raises
    UsageError, UserError as `links_file`."""
    path = links_file(data)
    return data.links if path is None else sha256_of(path)


def parse_links(
    path: Path, number: int, line: str, num_source: int, num_target: int
) -> tuple[Link, ...]:
    """The links of a line, for a pair with these numbers of words. Raises UserError: the line is
    not in Pharaoh format, or a link lies outside the pair."""
    try:
        links = parse_pharaoh(line)
    except UserError as error:
        raise UserError(f"{path}, line {number}: {error}") from None
    for source, target in links:
        if source >= num_source or target >= num_target:
            raise UserError(
                f"{path}, line {number}: link {source}-{target} lies outside a pair of "
                f"{num_source} and {num_target} words; split words at spaces and tabs only, number "
                "them from 0, and write the source first"
            )
    return links


def write_pharaoh_links(directory: Path, path: Path, keep: Iterable[bool], name: str) -> str:
    """Convert a Pharaoh file to links between tokens and write them next to the training text in
    `directory`. Returns a note for the user.

    Args:
        directory: the prepared corpus being built.
        path: a file of links, a line for each training pair that was read, in the format of
            `parse_links`.
        keep: for each of these pairs, whether it is in `directory`.
        name: of the links in `data.links`.

    Raises:
        UserError: there is no link at all.
    """
    find_words = WORDS.get(name, words_of)
    texts = [iter_exact(split_path(directory, "train", side, "txt")) for side in SIDES]
    tokens = [TokenStore(split_path(directory, "train", side, "tokens")) for side in SIDES]
    unlike: list[str] = []

    def token_links() -> Iterator[Sequence[Link]]:
        lines = compress(iter_exact(path), keep)
        for line, source, target, *pair_tokens in zip(lines, *texts, *tokens, strict=True):
            words = (find_words(source), find_words(target))
            try:
                yield links_between_tokens(parse_pharaoh(line), *words, *pair_tokens)
            except ValueError:  # a tokenizer that drops or replaces characters
                unlike.append(line)
                yield ()

    num_links = _write(directory, token_links())
    note = ""
    if unlike:
        note = (
            f"; {len(unlike):,} pairs have none: their tokens are not the same text as their words"
        )
    if not num_links:
        raise UserError(
            f"data.links={name}: no link between tokens of training pairs; expected lines such as "
            f"0-0 1-2{note}"
        )
    return f"links: {num_links:,} between tokens of training pairs, from {name}{note}"


def write_estimated_links(directory: Path) -> str:
    """Write links between the tokens of the training pairs in `directory` as estimated by IBM model
    1. The ids are still numbers of all distinct tokens, also of those that the vocabulary will
    lack. Returns a note for the user."""
    source, target = [SequenceStore(split_path(directory, "train", side, "ids")) for side in SIDES]
    num_links = _write(directory, ibm1.align(source.__getitem__, target.__getitem__, len(source)))
    return (
        f"links: {num_links:,} between tokens of training pairs, by IBM model 1 in both directions"
    )


def _write(directory: Path, links: Iterable[Sequence[Link]]) -> int:
    """Write the links of the training pairs and return their number."""
    writer = SequenceWriter(split_path(directory, "train", "token_links"))
    num_links = 0
    remaining = iter(links)
    while block := list(islice(remaining, _PAIRS_AT_ONCE)):
        positions = np.array(list(chain.from_iterable(block)), dtype=np.int32)
        writer.add(positions.ravel(), np.array([2 * len(pair_links) for pair_links in block]))
        num_links += len(positions)
    return num_links
