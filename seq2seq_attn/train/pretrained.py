"""Set the start values of a new model that are not random.

There are three kinds: the weights of another run (`train.start_from`), word vectors
(`model.embedding`), and the translation table of an output layer that has a table (`TakesTable`).
The weights of another run include its trained word vectors and its table.

Runs, files and training pairs are read only when training starts. So a run that is resumed or was
moved does not need them.
"""

import logging

import torch

from seq2seq_attn.config import Config, ModelConfig
from seq2seq_attn.data.sources import PACKAGED_NEEDS
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model.build import embedding_of
from seq2seq_attn.model.output.base import TakesTable
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run import Run
from seq2seq_attn.text.ibm1 import estimate_table
from seq2seq_attn.text.vocab import SPECIALS
from seq2seq_attn.text.word_vectors import read_word_vectors, vector_size
from seq2seq_attn.train.update import Updater

log = logging.getLogger(__name__)


def check_start_values(config: Config) -> None:
    """Check the settings of start values as far as possible before data is prepared.

    A warning is logged if a setting of the model differs from the run to start from and the shapes
    of the weights are the same.

    Raises:
        UsageError: the run to start from differs in the settings of the model, the tokenizer or the
            vocabulary; or word vectors do not have the size of the embedding.
        UserError: a run or a file is missing or damaged.
    """
    if config.train.start_from is None:
        for side, path in config.model.embedding.files().items():
            size = vector_size(path)
            if size != config.model.embedding_size:
                raise UsageError(
                    f"model.embedding.{side}_vectors={path}: its vectors have {size} numbers, and "
                    f"model.embedding_size is {config.model.embedding_size}; set "
                    f"model.embedding_size={size}"
                )
        return
    run = Run(config.train.start_from)
    try:
        start_config = run.config
    except UserError as error:
        raise type(error)(f"train.start_from: {error}; {PACKAGED_NEEDS}") from None
    sections = []
    if start_config.data.tokenizer != config.data.tokenizer:
        sections.append("data.tokenizer")
    if start_config.data.vocab != config.data.vocab:
        sections.append("data.vocab")
    try:
        run.load_model(config.model)
    except UserError:
        run.load_model(start_config.model)  # raises if the run is damaged
        sections.append("model")
    if sections:
        raise UsageError(
            f"train.start_from={run.path}: its {sections[0]} settings differ from this run's; copy "
            f"them from {run.config_path}"
        )
    for key, (old, new) in start_config.model.changes_to(config.model).items():
        if not key.startswith(("dropout.", "embedding.")):
            log.warning("model.%s=%r: %s was trained with %r", key, new, run.path, old)


def set_start_values(updater: Updater, config: Config, prepared: PreparedCorpus) -> list[str]:
    """Set the start values of a new model and of its average. Return lines for the log.

    Raises:
        UsageError: the vocabularies of the run to start from differ from those of the corpus, or
            its source vectors differ in size.
        UserError: a run or a file is damaged, or a file of word vectors has no token of the
            vocabulary.
    """
    if config.train.start_from is not None:
        notes = _load_run(updater, Run(config.train.start_from), prepared)
    else:
        notes = _set_vectors(updater.model, config.model, prepared)
        if isinstance(updater.model.output, TakesTable):
            # The table holds t(target | source) of IBM Model 1.
            pairs = prepared.pairs("train")
            notes.append(
                updater.model.output.set_table(
                    estimate_table(pairs.source, pairs.target, len(pairs))
                )
            )
    if updater.average:
        updater.average.restart()
    return notes


def _load_run(updater: Updater, run: Run, prepared: PreparedCorpus) -> list[str]:
    """Load the weights of a run that has the vocabularies of the corpus. Return lines for the
    log."""
    vocabs = {
        "source": (run.source_vocab, prepared.source_vocab),
        "target": (run.target_vocab, prepared.target_vocab),
    }
    for side, (before, vocab) in vocabs.items():
        if before != vocab:
            raise UsageError(
                f"train.start_from={run.path}: its {side} vocabulary has {len(before)} types and "
                f"is not this corpus's, which has {len(vocab)}; set data.vocab_from={run.path}, as "
                "`seq2seq train --from` does"
            )
    if run.source_tokenizer.vector_sizes != prepared.source_tokenizer.vector_sizes:
        raise UsageError(
            f"train.start_from={run.path}: its vectors differ in size from this corpus's"
        )
    return updater.load_best(run)


@torch.no_grad()
def _set_vectors(model: Seq2Seq, config: ModelConfig, prepared: PreparedCorpus) -> list[str]:
    """Copy word vectors into the embeddings of a new model. Return a line per vocabulary with the
    share of its types that have vectors."""
    coverage = []
    for side, path in config.embedding.files().items():
        vocab = prepared.source_vocab if side == "source" else prepared.target_vocab
        tokens = vocab.tokens[len(SPECIALS) :]
        word_vectors = read_word_vectors(path, tokens, config.embedding_size)
        if not len(word_vectors.indices):
            raise UserError(
                f"{path}: has none of the {len(tokens)} {side} types, such as {tokens[0]!r}; give "
                "vectors of that language and tokenization, or set data.tokenizer.name=spacy for "
                "vectors of words"
            )
        weight = embedding_of(model, side).weight
        rows = torch.from_numpy(word_vectors.indices + len(SPECIALS)).to(weight.device)
        weight[rows] = torch.from_numpy(word_vectors.vectors).to(weight)
        number = len(word_vectors.indices)
        coverage.append(
            f"{path}: vectors for {number} of {len(tokens)} {side} types "
            f"({100 * number / len(tokens):.1f} %), {word_vectors.num_by_case} of them found only "
            "in a different case"
        )
    return coverage
