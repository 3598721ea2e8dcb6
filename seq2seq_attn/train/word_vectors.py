"""Initialize embeddings with pretrained word vectors (`model.embedding`). The files are read only when training starts,
so a resumed or moved run does not need them."""

from __future__ import annotations

import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model.build import embedding_of
from seq2seq_attn.text.vocab import SPECIALS
from seq2seq_attn.text.word_vectors import read_word_vectors, vector_size
from seq2seq_attn.train.update import Updater


def check_vectors(config: ModelConfig) -> None:
    """Check what can be known from the files' first lines.

    Raises:
        UsageError: vectors of another size than the embedding.
        UserError: a file that is missing or does not hold vectors.
    """
    for side, path in config.embedding.files().items():
        if (size := vector_size(path)) != config.embedding_size:
            raise UsageError(
                f"model.embedding.{side}_vectors={path}: its vectors have {size} numbers, and model.embedding_size is "
                f"{config.embedding_size}; set model.embedding_size={size}"
            )


@torch.no_grad()
def set_vectors(updater: Updater, config: ModelConfig, prepared: PreparedCorpus) -> list[str]:
    """Put the vectors into the embeddings of a new model. Returns lines for the log: the coverage of each vocabulary.

    Raises:
        UserError: a damaged file, or one that has no token of the vocabulary.
    """
    model, coverage = updater.model, []
    for side, path in config.embedding.files().items():
        vocab = prepared.source_vocab if side == "source" else prepared.target_vocab
        tokens = vocab.tokens[len(SPECIALS) :]
        word_vectors = read_word_vectors(path, tokens, config.embedding_size)
        if not len(word_vectors.indices):
            raise UserError(
                f"{path}: has none of the {len(tokens)} {side} types, such as {tokens[0]!r}; give vectors of that "
                "language and tokenization, or set data.tokenizer.name=spacy for vectors of words"
            )
        weight = embedding_of(model, side).weight
        rows = torch.from_numpy(word_vectors.indices + len(SPECIALS)).to(weight.device)
        weight[rows] = torch.from_numpy(word_vectors.vectors).to(weight)
        number = len(word_vectors.indices)
        coverage.append(
            f"{path}: vectors for {number} of {len(tokens)} {side} types ({100 * number / len(tokens):.1f} %), "
            f"{word_vectors.num_by_case} of them found only in a different case"
        )
    if updater.average and coverage:
        updater.average.restart()
    return coverage
