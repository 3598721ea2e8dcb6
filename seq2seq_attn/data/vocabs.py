"""The tokenizers and vocabularies of a corpus: made from its text, or those of another run
(`data.vocab_from`).

A run that was trained on such a corpus has copies of them, and the hash of the text that `data.mix`
takes from the other run. So it can be resumed and evaluated without the other run.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nlargest
from pathlib import Path
from typing import Any

from seq2seq_attn.config import DataConfig, shorten
from seq2seq_attn.config.load import load_run_config
from seq2seq_attn.data.draft import EXTRA, Draft
from seq2seq_attn.data.store import RUN_CORPUS, iter_exact, vocab_path
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import ListedFiles, check_files
from seq2seq_attn.text.tokenizers.base import SIDES, Tokenizer
from seq2seq_attn.text.tokenizers.factory import build_tokenizers, load_source, load_tokenizer
from seq2seq_attn.text.tokenizers.source import NoSource, Source
from seq2seq_attn.text.vocab import Vocab, build_vocab

MAX_TRAINING_LINES = 100_000
"""Lines per side that a tokenizer is trained on, approximately."""
_NUM_EXAMPLES = 3
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
    names = ["target_language", "tokenizer", "vocab"]
    if data.layout.columns:
        names.insert(0, "sources")
    for name in names:
        old = getattr(other, name)
        new = getattr(data, name)
        if old != new:
            raise UsageError(
                f"data.vocab_from={data.vocab_from}: its data.{name} differs, {shorten(old)}; here "
                f"{shorten(new)}"
            )
    return data.vocab_from


def vocab_identity(data: DataConfig, vocab_dir: Path | None) -> dict[str, Any]:
    """The part of the folder's hash that depends on the other run; empty without. Raises UserError
    if the run is damaged."""
    if vocab_dir is None:
        return {}
    sides = SIDES if data.layout.columns else SIDES[1:]
    files = {side: check_files(vocab_dir, prefix=f"{side}.") for side in sides}
    identity: dict[str, Any] = {"vocab_from": files}
    if data.mix:
        key = "train" if vocab_dir == data.vocab_from else "mixed"
        text = ListedFiles(vocab_dir).read_json(RUN_CORPUS)[key]
        identity["mix"] = {"weight": data.mix, "text": text}
    return identity


def make_tokenizers(
    draft: Draft, data: DataConfig, vocab_dir: Path | None
) -> tuple[Source, Tokenizer]:
    """The tokenizers of both sides: those of the run in `vocab_dir`, or new ones, trained on the
    training pairs, with the extra ones if the configuration says so."""
    if vocab_dir is not None:
        source = load_source(vocab_dir) if data.layout.columns else NoSource()
        return source, load_tokenizer(vocab_dir, "target")
    files = [draft.files("train")]
    num_pairs = draft.num_pairs["train"]
    if data.extra_in_vocab and draft.num_extra:
        files.append(draft.files(EXTRA))
        num_pairs += draft.num_extra
    source_lines, target_lines = [
        _sample_lines(paths, num_pairs) for paths in zip(*files, strict=True)
    ]
    return build_tokenizers(source_lines, target_lines, data)


def _sample_lines(paths: Sequence[Path], num_lines: int) -> Iterator[str]:
    """All lines of these files, or a random sample of about `MAX_TRAINING_LINES`, always the
    same."""
    for path in paths:
        generator = random.Random("tokenizer")
        for line in iter_exact(path):
            if generator.random() * num_lines < MAX_TRAINING_LINES:
                yield line


def make_vocabs(
    counters: Sequence[Counter[str]], data: DataConfig, vocab_dir: Path | None
) -> list[Vocab]:
    """The vocabularies of both sides: those of the run in `vocab_dir`, or the tokens that these
    counters of both sides have most often."""
    if vocab_dir is not None:
        vocabs = [Vocab.load(vocab_path(vocab_dir, side)) for side in SIDES]
        if not data.layout.columns and not data.vocab.joint:
            vocabs[0] = build_vocab(Counter())
        return vocabs
    source, target = counters
    if data.vocab.joint:
        source = target = source + target
    limits = data.vocab.model_dump(exclude={"joint"})
    return [build_vocab(source, **limits), build_vocab(target, **limits)]


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
            examples = nlargest(_NUM_EXAMPLES, unknown, key=lambda token: (unknown[token], token))
            note += f", such as {', '.join(map(repr, examples))}"
        notes.append(note)
    return notes
