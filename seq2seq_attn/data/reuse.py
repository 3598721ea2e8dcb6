"""Tokenizers and vocabularies of another run (`data.vocab_from`), and pairs of its training text
(`data.mix`).

A run that was trained on such a corpus has copies of both, and the hash of that text. So it can be
resumed and evaluated without the other run.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import repeat
from pathlib import Path
from typing import Any

from seq2seq_attn.config import DataConfig, shorten
from seq2seq_attn.config.load import load_run_config
from seq2seq_attn.data.store import RUN_CORPUS, PreparedCorpus, split_path
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import ListedFiles, check_files
from seq2seq_attn.text.lines import iter_lines
from seq2seq_attn.text.tokenizers.base import SIDES
from seq2seq_attn.text.vocab import Vocab

NUM_EXAMPLES = 3
"""unknown tokens that are named"""


def find_vocab_dir(data: DataConfig, own_run: Path | None) -> Path | None:
    """The run directory with the tokenizers and vocabularies to use: `own_run`, which was trained
    on this corpus, if it has begun; else `data.vocab_from`. None: they are made from the text.

    Raises:
        UsageError: the other run has other settings, or `data.mix` lacks a run.
        UserError: the other run cannot be read.
    """
    if data.vocab_from is None:
        if data.mix:
            raise UsageError(
                f"data.mix={data.mix:g}: expected data.vocab_from, the run whose text is mixed in, "
                "or 0"
            )
        return None
    if own_run is not None and (own_run / RUN_CORPUS).exists():
        return own_run
    try:
        other = load_run_config(ListedFiles(data.vocab_from)).data
    except UserError as error:
        raise type(error)(f"data.vocab_from: {error}") from None
    for name in (
        *(("sources",) if data.layout.columns else ()),
        "target_language",
        "tokenizer",
        "vocab",
    ):
        old, new = getattr(other, name), getattr(data, name)
        if old != new:
            raise UsageError(
                f"data.vocab_from={data.vocab_from}: its data.{name} differs, {shorten(old)}; here "
                f"{shorten(new)}"
            )
    return data.vocab_from


def reuse_identity(data: DataConfig, vocab_dir: Path | None) -> dict[str, Any]:
    """The part of the folder's hash that depends on the other run; empty without. Raises UserError
    if the run is damaged."""
    if vocab_dir is None:
        return {}
    sides = SIDES if data.layout.columns else SIDES[1:]
    files = {"vocab_from": {side: check_files(vocab_dir, prefix=f"{side}.") for side in sides}}
    if not data.mix:
        return files
    key = "train" if vocab_dir == data.vocab_from else "mixed"
    return {
        **files,
        "mix": {"weight": data.mix, "text": ListedFiles(vocab_dir).read_json(RUN_CORPUS)[key]},
    }


def draw_pairs(corpus: PreparedCorpus, number: int) -> Iterator[tuple[str, str]]:
    """Training pairs of a corpus, in their order: the whole text as often as it fits into `number`,
    and for the rest different pairs, drawn at random, always the same."""
    num_pairs = len(corpus.pairs("train"))
    times, rest = divmod(number, num_pairs)
    drawn = set(random.Random("mix").sample(range(num_pairs), rest))
    lines = (iter_lines(split_path(corpus.directory, "train", side, "txt")) for side in SIDES)
    for index, pair in enumerate(zip(*lines, strict=True)):
        yield from repeat(pair, times + (index in drawn))


def count_unknown(counts: Sequence[Counter[str]], vocabs: Sequence[Vocab]) -> list[str]:
    """A note per side: how many tokens of the training text the other run's vocabulary lacks, and
    the most frequent. `counts`: how often each token of a side occurs."""
    notes = []
    for side, counter, vocab in zip(SIDES, counts, vocabs, strict=True):
        unknown = {token: count for token, count in counter.items() if token not in vocab}
        number = sum(unknown.values())
        total = counter.total()
        note = (
            f"{side}: {number:,} of {total:,} tokens ({100 * number / max(total, 1):.1f} %) are "
            "unknown to the vocabulary that is taken over"
        )
        if unknown:
            examples = nlargest(NUM_EXAMPLES, unknown, key=lambda token: (unknown[token], token))
            note += f", such as {', '.join(map(repr, examples))}"
        notes.append(note)
    return notes
