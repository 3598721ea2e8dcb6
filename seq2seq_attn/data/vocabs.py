"""The tokenizers and vocabularies of a corpus: made from its text, or those of another run."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from seq2seq_attn.config import DataConfig
from seq2seq_attn.data.draft import Draft
from seq2seq_attn.data.store import vocab_path
from seq2seq_attn.text.tokenizers.base import SIDES, Tokenizer
from seq2seq_attn.text.tokenizers.factory import build_tokenizers, load_source, load_tokenizer
from seq2seq_attn.text.tokenizers.source import NoSource, Source
from seq2seq_attn.text.vocab import Vocab, build_vocab

MAX_TRAINING_LINES = 100_000
"""Lines per side that a tokenizer is trained on, approximately."""


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
        files.append(draft.extra_files)
        num_pairs += draft.num_extra
    sources, targets = zip(*files, strict=True)
    return build_tokenizers(
        _sample_lines(sources, num_pairs), _sample_lines(targets, num_pairs), data
    )


def _sample_lines(paths: Sequence[Path], num_lines: int) -> Iterator[str]:
    """All lines of these files, or a random sample of about `MAX_TRAINING_LINES`, always the
    same."""
    is_small = num_lines <= MAX_TRAINING_LINES
    for path in paths:
        generator = random.Random("tokenizer")
        with path.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                if is_small or generator.random() * num_lines < MAX_TRAINING_LINES:
                    yield line[:-1]


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
