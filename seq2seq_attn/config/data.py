"""The settings of the data: corpus, tokenizers, vocabularies.

"Source" means the side to translate from. A sentence may have several sources, one per language.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from seq2seq_attn.config.layout import SourceLayout
from seq2seq_attn.config.types import (
    ColumnNames,
    FilePath,
    LanguageCode,
    NumWorkers,
    PositiveInt,
    RatioOfLengths,
    Section,
    TextName,
    VocabSize,
    Weight,
)


class LimitConfig(Section):
    """The maximum number of pairs that are used of the training, validation and test text.

    The pairs are taken from the start of the text. None means all pairs. `test` applies to each
    test set. A number in place of the section applies to all texts.
    """

    train: PositiveInt | None = None
    valid: PositiveInt | None = None
    test: PositiveInt | None = None

    @model_validator(mode="before")
    @classmethod
    def _expand_number(cls, value: Any) -> Any:
        """Replace a number by a section in which this number limits every text."""
        if value is None or isinstance(value, int | str):
            return dict.fromkeys(cls.model_fields, value)
        return value

    def for_split(self, split: str) -> int | None:
        """Return the limit for `train`, for `valid`, or for a test set of any other name."""
        return {"train": self.train, "valid": self.valid}.get(split, self.test)


class TokenizerConfig(Section):
    """The tokenizer."""

    name: Literal["spacy", "sentencepiece", "characters", "spaces"] = "sentencepiece"
    """The method. `spaces` is for text that is already tokenized."""
    target: Literal["characters", "spaces", "positions"] | None = None
    """The tokenizer of the target side, if it differs from `name`. `positions` is for targets that
    are source positions, counted from 1."""
    lowercase: bool = False
    vocab_size: VocabSize = 8_000
    """The number of subwords (SentencePiece only)."""
    joint: bool = True
    """Whether source and target share a subword model (SentencePiece only)."""
    model_type: Literal["unigram", "bpe"] = "unigram"
    """The type of the subword model (SentencePiece only)."""
    sentences: bool = False
    """Whether the end of each source sentence is marked, which makes the attention `hierarchical`
    attend to sentences."""


class VocabConfig(Section):
    """The vocabulary: the most frequent tokens."""

    max_size: PositiveInt | None = None
    """The maximum number of tokens. None means no maximum."""
    min_frequency: PositiveInt = 1
    """Tokens that occur less often than this are left out."""
    joint: bool = False
    """Whether source and target share a vocabulary."""


class DataConfig(Section):
    """The corpus.

    If `corpus` is `files`, the pairs are read from `train`, `valid` and the values of `test`. Each
    of them is a prefix (`PREFIX.de`, `PREFIX.en`), a `[source file, target file]` pair, or a table
    (TSV, CSV, JSON, TMX, XLIFF, PO). Files may be compressed. Without `valid`, a tenth of the
    distinct source sentences, at most 1,000, are set aside for validation, each with one pair.
    Other pairs with these source sentences are dropped.

    `source_languages` replaces `source_language` if each sentence is given in several languages. A
    prefix then has a file for each language, a list names a file for each language, and a table has
    a column for each language.

    If a source language is `vectors`, the source is vectors instead of text: each line names a .npy
    file [n, F], or FILE.npz:KEY. If the source language is `none`, there is no source: the run is a
    language model, and each text is one file.
    """

    corpus: Literal["multi30k", "captions", "files"] = "multi30k"
    source_language: str = "de"
    source_languages: list[LanguageCode] = []
    target_language: str = "en"
    data_dir: FilePath = Path("data")
    source_dir: FilePath | None = None
    """A folder with the files of the corpus. For `multi30k`, these are the published files, instead
    of a download. For `captions`, these are other captions with gold links, instead of the embedded
    captions."""
    train: TextName | list[TextName] | None = None
    valid: TextName | list[TextName] | None = None
    test: dict[str, TextName | list[TextName]] = {}
    columns: ColumnNames = []
    """The columns of tables by number from 1 or by name: a column for each source, then the column
    of the target. If the list is empty, the first line of a table names the columns."""
    extra: list[TextName | list[TextName]] = []
    """Texts, named like `train`, with additional training pairs, for example translations of the
    corpus's source sentences by other runs. Pairs with a sentence from a validation or test set of
    the corpus are dropped and counted."""
    extra_in_vocab: bool = False
    """Whether tokenizers and vocabularies are made from the corpus and the extra pairs, as extra
    pairs with other languages or new words need. By default, tokenizers and vocabularies are made
    from the corpus alone, so that runs with and without extra pairs can form an ensemble."""
    limit: LimitConfig = LimitConfig()
    filter: list[Literal["copies", "segmented", "ratio", "duplicates"]] = []
    """Kinds of noisy pairs that are dropped from the training text of the corpus `files`."""
    max_length: PositiveInt = 100
    max_length_ratio: RatioOfLengths = 9.0
    links: TextName | None = None
    """Word alignments of the training pairs, for objectives that learn from alignments. `gold`
    means the alignments of the embedded corpus. `ibm1` means alignments estimated from the training
    pairs by IBM model 1. A file has one line per pair in the Pharaoh format (`0-0 1-2`), with words
    split at spaces and tabs and numbered from 0. None is for runs without such an objective."""
    tokenizer: TokenizerConfig = TokenizerConfig()
    vocab: VocabConfig = VocabConfig()
    vocab_from: FilePath | None = None
    """A run whose tokenizers and vocabularies are used instead of new ones, for fine-tuning
    (`train --from`). `tokenizer` and `vocab` must then equal the settings of that run."""
    mix: Weight = 0.0
    """Number of old training pairs per new training pair in fine-tuning. Old pairs keep the model
    from forgetting. They are drawn at random, with a fixed seed, from the training text of the run
    in `vocab_from`, and are treated like pairs of `extra`."""
    num_processes: NumWorkers | None = None
    """Processes that prepare the corpus. None means one process per available CPU, or one process
    for a small corpus. The prepared corpus does not depend on the number."""

    @property
    def sources(self) -> list[str]:
        """Return the languages of the sources. Usually there is a single source."""
        return [*self.source_languages] or [self.source_language]

    @property
    def layout(self) -> SourceLayout:
        """Return the layout of a source line, which has a column for each source."""
        return SourceLayout(tuple(self.sources))

    @property
    def source_name(self) -> str:
        """Return the language of the source. Several languages are joined: `de+fr+cs`."""
        return "+".join(self.sources)
