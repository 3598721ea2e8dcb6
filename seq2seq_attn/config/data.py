"""The settings of the data: corpus, tokenizers, vocabularies."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from seq2seq_attn.config.section import Section
from seq2seq_attn.config.types import (
    FilePath,
    LanguageCode,
    NumCaptions,
    NumProcesses,
    PositiveInt,
    Probability,
    RatioOfLengths,
    Seed,
    TextName,
    VocabSize,
    Weight,
)


class CaptionsConfig(Section):
    """The embedded corpus (`captions/`): numbers of pairs, lengths in source tokens, the seed."""

    num_train: NumCaptions = 20_000
    num_valid: NumCaptions = 500
    num_test: NumCaptions = 1_500
    min_length: PositiveInt = 4
    max_length: PositiveInt = 30
    seed: Seed = 1


class TokenizerConfig(Section):
    """The tokenizer."""

    name: Literal["spacy", "sentencepiece", "characters", "spaces"] = "sentencepiece"
    """`spaces` splits text that is tokenized already."""
    target: Literal["characters", "spaces", "positions"] | None = None
    """The tokenizer of the target side, where it differs; `positions`: source positions, counted from 1."""
    lowercase: bool = False
    vocab_size: VocabSize = 8_000
    """Subwords (SentencePiece only)."""
    joint: bool = True
    """One model for both sides (SentencePiece only)."""
    model_type: Literal["unigram", "bpe"] = "unigram"
    """SentencePiece only."""
    sentences: bool = False
    """Mark the end of each sentence of the source, so that the attention `hierarchical` is over sentences."""


class VocabConfig(Section):
    """The vocabulary: the most frequent tokens."""

    max_size: PositiveInt | None = None
    """None: all."""
    min_frequency: PositiveInt = 1
    """Tokens that occur less often are left out."""
    joint: bool = False
    """One vocabulary for both sides."""


class DataConfig(Section):
    """The corpus. `train`, `valid` and each value of `test` is a prefix (`PREFIX.de`, `PREFIX.en`), a
    `[source file, target file]` pair, a `.tsv` or a `.jsonl`, each plain or .gz; they are read when `corpus` is
    `files`. Without `valid`, one pair for each of a tenth of the distinct sources is set aside, at most 1,000; other
    pairs with these sources are dropped.

    `source_languages` replaces `source_language` where a sentence is given in several languages at once; a prefix then
    has a file for each, a list names a file for each, and a table has a column for each. The language `vectors` is a
    source of vectors instead of text: each line names a .npy file [n, F], or FILE.npz:KEY.
    """

    FORMER_KEYS: ClassVar = {"stitch": "concatenate"}

    corpus: Literal["multi30k", "captions", "files"] = "multi30k"
    source_language: str = "de"
    source_languages: list[LanguageCode] = []
    target_language: str = "en"
    data_dir: FilePath = Path("data")
    source_dir: FilePath | None = None
    train: TextName | list[TextName] | None = None
    valid: TextName | list[TextName] | None = None
    test: dict[str, TextName | list[TextName]] = {}
    extra: list[TextName | list[TextName]] = []
    """Texts, named like `train`, whose pairs are training pairs besides those of the corpus, for example translations
    of its sources by other runs. Pairs with a sentence of its validation or test sets are dropped and counted."""
    extra_in_vocab: bool = False
    """Whether tokenizers and vocabularies are made from the extra pairs too, which other languages or new words need;
    otherwise they are those of the corpus alone, so runs with and without extra pairs can form an ensemble."""
    max_length: PositiveInt = 100
    max_length_ratio: RatioOfLengths = 9.0
    concatenate: dict[PositiveInt, Weight] = {}
    """Concatenate training pairs: maps K to the share of examples that are K pairs. Empty: no concatenation."""
    subword_sampling: Probability | None = None
    """Draw the subwords of the training pairs anew in each epoch, with this alpha. For a unigram model it is the
    exponent of a segmentation's probability (Kudo 2018; the smaller, the more varied), for BPE the probability that a
    merge is skipped (Provilkov et al. 2020). None: always the most probable subwords."""
    links: TextName | None = None
    """Word alignments of the training pairs, for objectives that learn from them: `gold` (those of the embedded
    corpus), `ibm1` (estimated from the training pairs by IBM model 1), or a file in the Pharaoh format (`0-0 1-2`), one
    line per pair, with words split at spaces and tabs and numbered from 0. None: no objective needs them."""
    tokenizer: TokenizerConfig = TokenizerConfig()
    vocab: VocabConfig = VocabConfig()
    captions: CaptionsConfig = CaptionsConfig()
    num_processes: NumProcesses | None = None
    """Processes for preparing the corpus; None: one per available CPU, or a single one for a small corpus. The result
    does not depend on it."""

    @property
    def sources(self) -> list[str]:
        """The language of each source, usually one."""
        return [*self.source_languages] or [self.source_language]

    @property
    def source_name(self) -> str:
        """The language of the source, or `de+fr+cs` for several."""
        return "+".join(self.sources)
