"""Set the start values of a new model that are not random.

There are three kinds of start values: the weights of another run (`train.start_from`), word vectors
(`model.embedding`), and the translation table of an output layer that has a table (`TakesTable`).
The weights of another run include the word vectors and the table of that run.

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
    """Check those settings of start values that can be checked before data is prepared.

    Weights can have the same shapes in models with different settings. Log a warning for each model
    setting that differs from the run to start from.

    Raises:
        UsageError: the run to start from differs in the settings of the model, the tokenizer or the
            vocabulary; or word vectors do not have the size of the embedding.
        UserError: a run or a file is missing or damaged.
    """
    if config.train.start_from is None:
        _check_vectors(config.model)
        return
    run = Run(config.train.start_from)
    try:
        start_config = run.config
    except UserError as error:
        raise type(error)(f"train.start_from: {error}; {PACKAGED_NEEDS}") from None
    section = _find_mismatch(run, start_config, config)
    if section is not None:
        raise UsageError(
            f"train.start_from={run.path}: its {section} settings differ from this run's; copy "
            f"them from {run.config_path}"
        )
    for key, (old, new) in start_config.model.changes_to(config.model).items():
        if key.endswith("_vectors") and new is not None:
            log.warning("model.%s=%s: not read, as %s has the vectors", key, new, run.path)
        # Dropout, start vectors and their freezing do not change how weights are used.
        if not key.startswith(("dropout.", "embedding.")):
            log.warning("model.%s=%r: %s was trained with %r", key, new, run.path, old)


def _check_vectors(config: ModelConfig) -> None:
    """Check that files of word vectors have vectors of the embedding's size."""
    for side, path in config.embedding.files().items():
        size = vector_size(path)
        if size != config.embedding_size:
            raise UsageError(
                f"model.embedding.{side}_vectors={path}: its vectors have {size} numbers, and "
                f"model.embedding_size is {config.embedding_size}; set model.embedding_size={size}"
            )


def _find_mismatch(run: Run, start_config: Config, config: Config) -> str | None:
    """Return the first section of settings that prevents a start from the weights of `run`, whose
    configuration is `start_config`. Return None if the weights fit."""
    if start_config.data.tokenizer != config.data.tokenizer:
        return "data.tokenizer"
    if start_config.data.vocab != config.data.vocab:
        return "data.vocab"
    try:
        run.load_model(config.model)
    except UserError:
        # The model settings differ, or the run is damaged. A damaged run also raises an error with
        # its own settings.
        run.load_model(start_config.model)
        return "model"
    return None


def set_start_values(updater: Updater, config: Config, prepared: PreparedCorpus) -> list[str]:
    """Set the start values of a new model, and restart the average of the weights from these
    values. Return lines for the log.

    Raises:
        UsageError: the run to start from has other vocabularies than the corpus, or source vectors
            of another size.
        UserError: a run or a file is damaged, or a file of word vectors has no token of the
            vocabulary.
    """
    if config.train.start_from is not None:
        notes = _load_run(updater, Run(config.train.start_from), prepared)
    else:
        notes = _set_vectors(updater.model, config.model, prepared)
        if isinstance(updater.model.output, TakesTable):
            pairs = prepared.pairs("train")
            # The table holds t(target | source) of IBM Model 1.
            table = estimate_table(
                pairs.source_ids.__getitem__, pairs.target_ids.__getitem__, len(pairs)
            )
            notes.append(updater.model.output.set_table(table))
    if updater.average:
        updater.average.restart()
    return notes


def _load_run(updater: Updater, run: Run, prepared: PreparedCorpus) -> list[str]:
    """Check that a run has the vocabularies and vector sizes of the corpus, and load its weights.
    Return lines for the log."""
    vocabs = {
        "source": (run.source_vocab, prepared.source_vocab),
        "target": (run.target_vocab, prepared.target_vocab),
    }
    for side, (run_vocab, vocab) in vocabs.items():
        if run_vocab != vocab:
            raise UsageError(
                f"train.start_from={run.path}: its {side} vocabulary has {len(run_vocab)} types "
                f"and is not this corpus's, which has {len(vocab)}; set "
                f"data.vocab_from={run.path}, as `seq2seq train --from` does"
            )
    if run.source_tokenizer.vector_sizes != prepared.source_tokenizer.vector_sizes:
        raise UsageError(
            f"train.start_from={run.path}: its vectors differ in size from this corpus's"
        )
    return updater.load_best(run)


@torch.no_grad()
def _set_vectors(model: Seq2Seq, config: ModelConfig, prepared: PreparedCorpus) -> list[str]:
    """Copy word vectors into the embeddings of a new model. For each file of vectors, return a line
    with the share of the vocabulary's types that have vectors."""
    notes = []
    for side, path in config.embedding.files().items():
        vocab = prepared.source_vocab if side == "source" else prepared.target_vocab
        tokens = vocab.tokens[len(SPECIALS) :]
        word_vectors = read_word_vectors(path, tokens, config.embedding_size)
        num_vectors = len(word_vectors.indices)
        if num_vectors == 0:
            raise UserError(
                f"{path}: has none of the {len(tokens)} {side} types, such as {tokens[0]!r}; give "
                "vectors of that language and tokenization, or set data.tokenizer.name=spacy for "
                "vectors of words"
            )
        weight = embedding_of(model, side).weight
        rows = torch.from_numpy(word_vectors.indices + len(SPECIALS)).to(weight.device)
        weight[rows] = torch.from_numpy(word_vectors.vectors).to(weight)
        notes.append(
            f"{path}: vectors for {num_vectors} of {len(tokens)} {side} types "
            f"({100 * num_vectors / len(tokens):.1f} %), {word_vectors.num_by_case} of them found "
            "only in a different case"
        )
    return notes
