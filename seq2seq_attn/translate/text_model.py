"""A model with its tokenizers and vocabularies, for translation and forced decoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run import Run
from seq2seq_attn.search.base import find_search
from seq2seq_attn.search.steps import Ensemble
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.text.tokenizers.vectors import FloatArray
from seq2seq_attn.text.vocab import UNK, ExtendedIds, Vocab, extended_ids
from seq2seq_attn.translate.segments import Segment


class TextModel:
    """A model that reads and writes text."""

    def __init__(
        self,
        model: Seq2Seq | Ensemble,
        text: Run | PreparedCorpus,
        search: SearchConfig,
        device: torch.device,
    ) -> None:
        """`text` has the tokenizers and vocabularies of both sides, `search` the options that a
        call does not give."""
        self.model = model
        self.source_tokenizer: Source = text.source_tokenizer
        self.target_tokenizer: Tokenizer = text.target_tokenizer
        self.source_vocab: Vocab = text.source_vocab
        self.target_vocab: Vocab = text.target_vocab
        self.search = search
        self.device = device
        self.has_attention = model.has_attention
        """whether translations come with attention over source positions; not with a fixed vector,
        for example"""
        self.copies_source = (model.output if isinstance(model, Seq2Seq) else model).copies_source
        """whether source tokens outside the target vocabulary may be copied"""

    def search_options(self, options: Mapping[str, object]) -> SearchConfig:
        """The options of a search: those given, and the run's for the rest. Raises UsageError as
        `Translator.translate`."""
        return find_search(self.search, options)[1]

    def extend(self, segments: Sequence[Segment]) -> list[ExtendedIds] | None:
        """The ids of source and target in the extended vocabulary; None if no source tokens are
        copied."""
        if not self.copies_source:
            return None
        extended = []
        for segment in segments:
            spelled = self.target_tokenizer.spell_source(segment.source)
            extended.append(extended_ids(spelled, segment.target, self.target_vocab))
        return extended

    def read_vectors(self, segments: Sequence[Segment]) -> list[FloatArray] | None:
        """For each segment the vectors at its positions, [positions, F], 0 where a token is of
        text; None if all sources are texts. Raises UserError: a file has changed since it was
        tokenized."""
        if self.source_tokenizer.vector_size is None:
            return None
        return [self.source_tokenizer.vectors(segment.line, segment.source) for segment in segments]

    def find_unknown(self, segment: Segment) -> tuple[int, ...]:
        """The positions of source tokens outside the vocabulary. A vector is known whatever its
        number."""
        unknown = {position for position, token_id in enumerate(segment.ids) if token_id == UNK}
        return tuple(
            sorted(unknown.difference(self.source_tokenizer.vector_positions(segment.source)))
        )
