"""Write links between the tokens of training pairs, for objectives that learn from word alignments.

A link is a source position and a target position that translate each other. `data.links` names the
origin of the links: the gold links of the embedded corpus, a Pharaoh file, or an estimate by IBM
model 1.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seq2seq_attn.config import DataConfig, shorten
from seq2seq_attn.data.store import (
    SequenceStore,
    SequenceWriter,
    TokenStore,
    iter_exact,
    side_paths,
    split_path,
)
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import sha256_of
from seq2seq_attn.text import ibm1
from seq2seq_attn.text.captions import SOURCE, swap_links, tokenize_caption
from seq2seq_attn.text.lines import iter_lines
from seq2seq_attn.text.links import Link, links_between_tokens, parse_pharaoh, words_of

GOLD, IBM1 = "gold", "ibm1"
"""values of `data.links`"""
_PAIRS_AT_ONCE = 4_096
"""number of pairs whose links are written at once"""


class LinkFile(NamedTuple):
    """A file with a line of word alignments for each pair of a split."""

    path: Path
    is_gold: bool
    """whether the links are gold links of captions, rather than links of a Pharaoh file"""
    is_reversed: bool = False
    """whether the target position of a link comes first in the file"""

    def words(self, sentence: str) -> list[str]:
        """Return the words of a sentence, whose positions the links name."""
        return tokenize_caption(sentence) if self.is_gold else words_of(sentence)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the file, with the source position of a link first."""
        lines = iter_lines(self.path)
        return map(swap_links, lines) if self.is_reversed else lines


def links_file(data: DataConfig) -> Path | None:
    """Return the path of the Pharaoh file that `data.links` names, or None if it names no file.

    Raises:
        UsageError: gold links are requested for a corpus without gold links.
        UserError: the file does not exist.
    """
    if data.links == GOLD and data.corpus != "captions":
        raise UsageError(
            f"data.links=gold: data.corpus={data.corpus} has no gold links; name a Pharaoh file of "
            f"its training pairs, or take {IBM1}"
        )
    if data.links in (None, GOLD, IBM1):
        return None
    if not os.path.isfile(data.links):  # `Path.is_file` may raise for a long name
        raise UserError(
            f"data.links={shorten(data.links)}: no such file; name a Pharaoh file of training "
            f"pairs, {GOLD} or {IBM1}"
        )
    return Path(data.links)


def find_links(data: DataConfig, gold: Mapping[str, Path]) -> dict[str, LinkFile]:
    """Return the file of word alignments of each split that has such a file. The training pairs
    have the file that `data.links` names, and the other splits have their gold links.

    Args:
        data: the `data` section of the configuration.
        gold: the file of gold links of each split; empty if the corpus has no gold links.

    Raises:
        UsageError, UserError: see `links_file`.
    """
    is_reversed = data.source_name != SOURCE
    files = {}
    for split, path in gold.items():
        files[split] = LinkFile(path, is_gold=True, is_reversed=is_reversed)
    pharaoh_path = links_file(data)
    if pharaoh_path is not None:
        files["train"] = LinkFile(pharaoh_path, is_gold=False)
    elif data.links != GOLD:
        # Training uses no links, or links by IBM model 1, so gold links serve evaluation only.
        files.pop("train", None)
    return files


def links_identity(data: DataConfig) -> str | None:
    """Return the value by which the identity of the prepared corpus includes the links: the hash of
    the Pharaoh file, or the value of `data.links` if it names no file.

    Raises:
        UsageError, UserError: see `links_file`.
    """
    path = links_file(data)
    return data.links if path is None else sha256_of(path)


def check_links(path: Path, number: int, line: str, num_source: int, num_target: int) -> None:
    """Check that both positions of each link of a line lie inside the pair.

    Args:
        path: the file of the line, for error messages.
        number: the number of the line, from 1, for error messages.
        line: links in Pharaoh format.
        num_source: number of words of the source.
        num_target: number of words of the target.

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
                f"{path}, line {number}: link {source}-{target} lies outside a pair of "
                f"{num_source} and {num_target} words; split words at spaces and tabs only, number "
                "them from 0, and write the source first"
            )


def write_pharaoh_links(directory: Path, lines: Iterable[str], links: LinkFile, name: str) -> str:
    """Convert links between words to links between tokens, and write the links between tokens
    beside the training text in `directory`. Return a note for the user.

    Args:
        directory: the folder of the prepared corpus.
        lines: a line of links in Pharaoh format for each training pair in `directory`.
        links: the file that the lines come from.
        name: the value of `data.links`.

    Raises:
        UserError: no pair has a link between tokens.
    """
    sources, targets = map(iter_exact, side_paths(directory, "train", "txt"))
    source_store, target_store = map(TokenStore, side_paths(directory, "train", "tokens"))
    pairs = zip(lines, sources, targets, source_store, target_store, strict=True)
    num_unmatched = 0

    def token_links() -> Iterator[Sequence[Link]]:
        nonlocal num_unmatched
        for line, source, target, source_tokens, target_tokens in pairs:
            word_links = parse_pharaoh(line)
            words = (links.words(source), links.words(target))
            try:
                yield links_between_tokens(word_links, *words, source_tokens, target_tokens)
            except ValueError:  # the tokenizer has dropped or replaced characters of the words
                num_unmatched += 1
                yield []

    # `num_unmatched` is complete only when `_write` has read the generator to its end.
    num_links = _write(directory, token_links())
    note = ""
    if num_unmatched:
        note = (
            f"; {num_unmatched:,} pairs have none: their tokens are not the same text as their "
            "words"
        )
    if not num_links:
        raise UserError(
            f"data.links={name}: no link between tokens of training pairs; expected lines such as "
            f"0-0 1-2{note}"
        )
    return f"links: {num_links:,} between tokens of training pairs, from {name}{note}"


def write_estimated_links(directory: Path) -> str:
    """Estimate links between the tokens of the training pairs by IBM model 1, and write the links
    to `directory`. Return a note for the user.

    This function must be called before `SplitBuilder.write_ids`: until then, the ids files have a
    number for each distinct token, so that the model can tell tokens outside the vocabulary apart.
    """
    source, target = map(SequenceStore, side_paths(directory, "train", "ids"))
    num_links = _write(directory, ibm1.align(source.__getitem__, target.__getitem__, len(source)))
    return (
        f"links: {num_links:,} between tokens of training pairs, by IBM model 1 in both directions"
    )


def _write(directory: Path, links: Iterable[Sequence[Link]]) -> int:
    """Write the links of each training pair, and return the number of links.

    The file `token_links` has a sequence of integers for each pair: the source position and the
    target position of the first link, then of the second link, and so on.
    """
    writer = SequenceWriter(split_path(directory, "train", "token_links"))
    num_links = 0
    remaining = iter(links)
    while block := list(islice(remaining, _PAIRS_AT_ONCE)):
        block_links = list(chain.from_iterable(block))
        positions = np.array(block_links, dtype=np.int32)  # [links, 2]
        num_positions = np.array([2 * len(pair_links) for pair_links in block])
        writer.add(positions.ravel(), num_positions)
        num_links += len(block_links)
    return num_links
