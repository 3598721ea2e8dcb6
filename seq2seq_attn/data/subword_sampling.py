"""Draw the subwords of the training sentences anew in each epoch (`data.subword_sampling`).

A unigram model draws a segmentation x of the sentence X with probability proportional to P(x) ** alpha (Kudo 2018,
section 3.3, over all segmentations). A BPE model skips each merge with probability alpha (BPE-dropout; Provilkov et
al. 2020, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from seq2seq_attn.config import DataConfig
from seq2seq_attn.data.id_store import IdsInMemory, IdStore
from seq2seq_attn.data.store import PairStore, PreparedCorpus
from seq2seq_attn.data.surface import POSITIONS, IdArray
from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.tokenizers.sentencepiece import SentencePieceTokenizer
from seq2seq_attn.text.vocab import UNK, Vocab


@lru_cache(maxsize=1)
def draw_pairs(prepared: PreparedCorpus, alpha: float, *, seed: int, epoch: int) -> PairStore:
    """The training pairs with the subwords of an epoch, on each side whose tokenizer is SentencePiece."""
    pairs, (source_lines, target_lines) = prepared.pairs("train"), prepared.text("train")
    source_ids, target_ids = pairs.sides
    tokenizer, vocab = prepared.source_tokenizer, prepared.source_vocab
    source = _draw(source_ids, source_lines, tokenizer, vocab, alpha, seed=f"{seed}/{epoch}/source")
    tokenizer, vocab = prepared.target_tokenizer, prepared.target_vocab
    target = _draw(target_ids, target_lines, tokenizer, vocab, alpha, seed=f"{seed}/{epoch}/target")
    return pairs.with_sides(source, target)


def _draw(
    own: IdStore, lines: Sequence[str], tokenizer: Tokenizer, vocab: Vocab, alpha: float, *, seed: str
) -> IdStore:
    if not isinstance(tokenizer, SentencePieceTokenizer):
        return own
    drawn = tokenizer.sample_many(lines, alpha, seed=seed)
    return IdsInMemory([_open_ids(vocab.ids_of(tokens), own[index], vocab) for index, tokens in enumerate(drawn)])


def _open_ids(ids: Sequence[int], own_ids: IdArray, vocab: Vocab) -> IdArray:
    """The ids of drawn subwords. Unknown tokens, which no draw splits, keep the open ids that they have in the corpus
    (`data/surface.py`)."""
    drawn = np.array(ids, dtype=np.int32)
    if len(open_ids := own_ids[own_ids >= len(vocab)]):
        drawn[drawn == UNK] = open_ids
    return drawn


def subwords_to_draw(data: DataConfig, tokenizers: Sequence[Tokenizer]) -> list[list[str]]:
    """For each tokenizer, the subwords that its side's vocabulary needs besides those of the corpus: all of its model,
    as a draw may have any of them."""
    if data.subword_sampling is None:
        return [[] for _ in tokenizers]
    return [tokenizer.subwords() if isinstance(tokenizer, SentencePieceTokenizer) else [] for tokenizer in tokenizers]


def sampling_identity(data: DataConfig) -> dict[str, Any]:
    """The part of the folder's hash that depends on whether subwords are drawn, not on how."""
    return {} if data.subword_sampling is None else {"vocab": "all subwords"}


def describe_draw(own: PairStore, drawn: PairStore) -> str:
    """One line: how many subwords a sentence has in an epoch, and how many in the corpus."""
    sides = ((own.source_lengths, drawn.source_lengths), (own.target_lengths, drawn.target_lengths))
    source, target = (f"{after.mean():.1f} instead of {before.mean():.1f}" for before, after in sides)
    return f"subwords are drawn anew in each epoch: {source} per source sentence, {target} per target sentence"


def check_sampling(data: DataConfig) -> None:
    """Raises UsageError if subwords are to be drawn where there are none, or where another setting relies on the
    corpus's own subwords."""
    if (alpha := data.subword_sampling) is None:
        return
    needs = {
        "data.tokenizer.name=sentencepiece": data.tokenizer.name == "sentencepiece",
        "a single source": len(data.sources) == 1,
        "data.tokenizer.sentences=false": not data.tokenizer.sentences,
        "another data.tokenizer.target than positions": data.tokenizer.target != POSITIONS,
        "data.links=null, since they link the corpus's own subwords": data.links is None,
        "data.vocab.max_size=null and min_frequency=1, as a draw may have any subword": (
            data.vocab.max_size is None and data.vocab.min_frequency == 1
        ),
        "alpha between 0 (no merge is skipped) and 1 (all are) for BPE": (
            data.tokenizer.model_type == "unigram" or 0.0 < alpha < 1.0
        ),
    }
    for needed, is_met in needs.items():
        if not is_met:
            raise UsageError(f"data.subword_sampling={alpha:g} needs {needed}; or set data.subword_sampling=null")
