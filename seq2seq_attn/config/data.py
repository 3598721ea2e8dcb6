"""The settings of the data: corpus, tokenizers, vocabularies."""

from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from seq2seq_attn.config.layout import SourceLayout
from seq2seq_attn.config.types import (
    ColumnNames,
    FilePath,
    LanguageCode,
    NumProcesses,
    PositiveInt,
    RatioOfLengths,
    Section,
    TextName,
    VocabSize,
    Weight,
)


class LimitConfig(Section):
    """How many pairs of each split are used, the first ones; None: all. `test` applies to each test
    set. A number in place of the section limits every split."""

    train: PositiveInt | None = None
    valid: PositiveInt | None = None
    test: PositiveInt | None = None

    @model_validator(mode="before")
    @classmethod
    def _expand_number(cls, value: Any) -> Any:
        return (
            dict.fromkeys(cls.model_fields, value)
            if value is None or isinstance(value, int | str)
            else value
        )

    def for_split(self, split: str) -> int | None:
        """The limit of a split, by its name."""
        return {"train": self.train, "valid": self.valid}.get(split, self.test)


class TokenizerConfig(Section):
    """The tokenizer."""

    name: Literal["spacy", "sentencepiece", "characters", "spaces"] = "sentencepiece"
    """`spaces` splits text that is tokenized already."""
    target: Literal["characters", "spaces", "positions"] | None = None
    """The tokenizer of the target side, where it differs; `positions`: source positions, counted
    from 1."""
    lowercase: bool = False
    vocab_size: VocabSize = 8_000
    """Subwords (SentencePiece only)."""
    joint: bool = True
    """One model for both sides (SentencePiece only)."""
    model_type: Literal["unigram", "bpe"] = "unigram"
    """SentencePiece only."""
    sentences: bool = False
    """Mark the end of each sentence of the source, so that the attention `hierarchical` is over
    sentences."""


class VocabConfig(Section):
    """The vocabulary: the most frequent tokens."""

    max_size: PositiveInt | None = None
    """None: all."""
    min_frequency: PositiveInt = 1
    """Tokens that occur less often are left out."""
    joint: bool = False
    """One vocabulary for both sides."""


class DataConfig(Section):
    """The corpus. `train`, `valid` and each value of `test` is a prefix (`PREFIX.de`, `PREFIX.en`),
    a `[source file, target file]` pair, or a table (TSV, CSV, JSON, TMX), plain or compressed; they
    are read when `corpus` is `files`. Without `valid`, one pair for each of a tenth of the distinct
    sources is set aside, at most 1,000; other pairs with these sources are dropped.

    `source_languages` replaces `source_language` where a sentence is given in several languages at
    once; a prefix then has a file for each, a list names a file for each, and a table has a column
    for each. The language `vectors` is a source of vectors instead of text: each line names a .npy
    file [n, F], or FILE.npz:KEY. With `none` there is no source: the run is a language model, and
    each text is one file.
    """

    corpus: Literal["multi30k", "captions", "files"] = "multi30k"
    source_language: str = "de"
    source_languages: list[LanguageCode] = []
    target_language: str = "en"
    data_dir: FilePath = Path("data")
    source_dir: FilePath | None = None
    """Folder with the files of the corpus: the published ones of Multi30k instead of a download, or
    other captions with gold links instead of the embedded ones."""
    train: TextName | list[TextName] | None = None
    valid: TextName | list[TextName] | None = None
    test: dict[str, TextName | list[TextName]] = {}
    columns: ColumnNames = []
    """The columns of tables, by number from 1 or by name: those of the sources, then that of the
    target. Empty: the first line of a table names its columns."""
    extra: list[TextName | list[TextName]] = []
    """Texts, named like `train`, whose pairs are training pairs besides those of the corpus, for
    example translations of its sources by other runs. Pairs with a sentence of its validation or
    test sets are dropped and counted."""
    extra_in_vocab: bool = False
    """Whether tokenizers and vocabularies are made from the extra pairs too, which other languages
    or new words need; otherwise they are those of the corpus alone, so runs with and without extra
    pairs can form an ensemble."""
    limit: LimitConfig = LimitConfig()
    filter: list[Literal["copies", "segmented", "ratio", "duplicates"]] = []
    """Noise to drop from the training text of `files`."""
    max_length: PositiveInt = 100
    max_length_ratio: RatioOfLengths = 9.0
    links: TextName | None = None
    """Word alignments of the training pairs, for objectives that learn from them: `gold` (those of
    the embedded corpus), `ibm1` (estimated from the training pairs by IBM model 1), or a file in
    the Pharaoh format (`0-0 1-2`), one line per pair, with words split at spaces and tabs and
    numbered from 0. None: no objective needs them."""
    tokenizer: TokenizerConfig = TokenizerConfig()
    vocab: VocabConfig = VocabConfig()
    vocab_from: FilePath | None = None
    """A run whose tokenizers and vocabularies are taken, instead of making them from this text, for
    fine-tuning (`train --from`). `tokenizer` and `vocab` are then that run's."""
    mix: Weight = 0.0
    """Pairs of the training text of the run in `vocab_from`, per training pair of this text: they
    keep a tuned model from forgetting. They are drawn at random, always the same, and treated as
    those of `extra`."""
    num_processes: NumProcesses | None = None
    """Processes for preparing the corpus; None: one per available CPU, or a single one for a small
    corpus. The result does not depend on it."""

    @property
    def sources(self) -> list[str]:
        """The language of each source, usually one."""
        return [*self.source_languages] or [self.source_language]

    @property
    def layout(self) -> SourceLayout:
        """The columns of a source line."""
        return SourceLayout(tuple(self.sources))

    @property
    def source_name(self) -> str:
        """The language of the source, or `de+fr+cs` for several."""
        return "+".join(self.sources)
