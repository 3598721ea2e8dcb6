"""Make the tokenizers and vocabularies of a corpus from its text, or take them from another run
(`data.vocab_from`).

A run that takes its tokenizers and vocabularies from another run keeps copies of these files, and
the hash of the text from which `data.mix` draws pairs. So the run can be resumed and evaluated
without the other run.
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
from seq2seq_attn.text.known_words import WORDS
from seq2seq_attn.text.tokenizers.base import SIDES, Tokenizer
from seq2seq_attn.text.tokenizers.factory import build_tokenizers, load_source, load_tokenizer
from seq2seq_attn.text.tokenizers.source import NoSource, Source
from seq2seq_attn.text.vocab import Vocab, build_vocab

MAX_TRAINING_LINES = 100_000
"""The approximate number of lines per side on which a tokenizer is trained."""
_NUM_EXAMPLES = 3
"""number of unknown tokens that a note gives as examples"""
_MAX_UNKNOWN = 0.5
"""maximum share of unknown tokens in the text of a side; a text in another script has more"""


def find_vocab_dir(data: DataConfig, own_run: Path | None) -> Path | None:
    """Return the run directory from which the corpus takes its tokenizers and vocabularies. Return
    None if the tokenizers and vocabularies are made from the text.

    Args:
        data: the `data` section of the configuration.
        own_run: the directory of the run that is trained on this corpus. If this run has copies of
            the files already, `own_run` is returned instead of `data.vocab_from`.

    Raises:
        UsageError: the run in `data.vocab_from` has different languages, tokenizers or
            vocabulary settings; or `data.mix` is set without `data.vocab_from`.
        UserError: the run in `data.vocab_from` cannot be read.
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
    languages = f"{other.source_name} to {other.target_language}"
    if data.layout.columns and languages != f"{data.source_name} to {data.target_language}":
        raise UsageError(f"{data.vocab_from}: the run translates {languages}; use these languages")
    for name in ("target_language", "tokenizer", "vocab"):
        old = getattr(other, name)
        new = getattr(data, name)
        if old != new:
            raise UsageError(
                f"data.vocab_from={data.vocab_from}: its data.{name} differs, {shorten(old)}; here "
                f"{shorten(new)}"
            )
    return data.vocab_from


def vocab_identity(data: DataConfig, vocab_dir: Path | None) -> dict[str, Any]:
    """Return the values that stand for the run in `data.vocab_from` in the hash of the prepared
    corpus: hashes of its files and, with `data.mix`, of its text. The result is empty if the corpus
    takes nothing from a run.

    Args:
        data: the `data` section of the configuration.
        vocab_dir: the result of `find_vocab_dir`.

    Raises:
        UserError: the run in `vocab_dir` is damaged.
    """
    if vocab_dir is None:
        return {}
    sides = SIDES if data.layout.columns else SIDES[1:]
    files = {side: check_files(vocab_dir, prefix=f"{side}.") for side in sides}
    identity: dict[str, Any] = {"vocab_from": files}
    # `vocab_dir` is the other run, or the run of this corpus, which keeps the hash of the other
    # run's known words as `words`, and of its text as `mixed`.
    is_other_run = vocab_dir == data.vocab_from
    corpus = ListedFiles(vocab_dir).read_json(RUN_CORPUS)
    words = corpus.get("words")
    if is_other_run:
        words = check_files(vocab_dir, prefix=WORDS).get(WORDS)
    if words:
        identity["words"] = words
    if data.mix:
        text = corpus["train" if is_other_run else "mixed"]
        identity["mix"] = {"weight": data.mix, "text": text}
    return identity


def make_tokenizers(
    draft: Draft, data: DataConfig, vocab_dir: Path | None
) -> tuple[Source, Tokenizer]:
    """Return the tokenizers of source and target: loaded from the run in `vocab_dir`, or trained on
    the training pairs if `vocab_dir` is None. With `data.extra_in_vocab`, they are also trained on
    the extra training pairs."""
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
    """Yield a random sample of about `MAX_TRAINING_LINES` lines, or all lines if there are fewer.

    The seed is fixed for each file, so that the sample is always the same, and has the same pairs
    on both sides.

    Args:
        paths: the files to read.
        num_lines: the number of lines in all files.
    """
    for path in paths:
        generator = random.Random("tokenizer")
        for line in iter_exact(path):
            if generator.random() * num_lines < MAX_TRAINING_LINES:
                yield line


def make_vocabs(
    counters: Sequence[Counter[str]], data: DataConfig, vocab_dir: Path | None
) -> list[Vocab]:
    """Return the vocabularies of source and target: loaded from the run in `vocab_dir`, or built of
    the most frequent tokens if `vocab_dir` is None.

    Args:
        counters: how often each token occurs, for each side.
        data: the `data` section of the configuration.
        vocab_dir: the result of `find_vocab_dir`.
    """
    if vocab_dir is not None:
        vocabs = [Vocab.load(vocab_path(vocab_dir, side)) for side in SIDES]
        # The other run may have a source vocabulary, which a language model does not need.
        if not data.layout.columns and not data.vocab.joint:
            vocabs[0] = build_vocab(Counter())
        return vocabs
    source, target = counters
    if data.vocab.joint:
        source = target = source + target
    limits = data.vocab.model_dump(exclude={"joint"})
    return [build_vocab(source, **limits), build_vocab(target, **limits)]


def check_unknown(counts: Sequence[Counter[str]], vocabs: Sequence[Vocab]) -> list[str]:
    """Check that the vocabulary of the other run has most tokens of the training text. Return a
    note for each side, with the number of unknown tokens and the most frequent unknown tokens.

    Args:
        counts: how often each token occurs in the training text, for each side.
        vocabs: the vocabulary of each side.

    Raises:
        UserError: most tokens of a side are unknown.
    """
    notes = []
    for side, counter, vocab in zip(SIDES, counts, vocabs, strict=True):
        unknown = {token: count for token, count in counter.items() if token not in vocab}
        number = sum(unknown.values())
        total = counter.total()
        note = (
            f"{side}: {number:,} of {total:,} tokens ({100 * number / max(total, 1):.1f} %) are "
            "unknown to the vocabulary of the other run"
        )
        if unknown:
            examples = nlargest(_NUM_EXAMPLES, unknown, key=lambda token: (unknown[token], token))
            note += f", such as {', '.join(map(repr, examples))}"
        if number > _MAX_UNKNOWN * total:
            raise UserError(
                f"data.vocab_from: {note}; train without --from, or on text in the language and "
                "script of that run"
            )
        notes.append(note)
    return notes
