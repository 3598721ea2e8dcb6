"""Start from the weights of another run (`train.start_from`): pretraining on other pairs, or a second stage. The run is
read only when training starts, so a resumed or moved run does not need it."""

from __future__ import annotations

import logging

from seq2seq_attn.config import Config, ModelConfig
from seq2seq_attn.data.extra import PACKAGED_NEEDS
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model.build import load_weights
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.text.tokenizers.several import vector_sizes
from seq2seq_attn.train.update import Updater

_MAY_DIFFER = ("dropout.", "embedding.")
_WITHOUT_REVERSE = "{}: has no target-to-source model; that of this run starts from random weights"

log = logging.getLogger(__name__)


def check_pretrained(config: Config) -> None:
    """Check what can be known before data is prepared. Warn if settings of the model differ though its weights have the
    same shapes.

    Raises:
        UsageError: the two runs differ in the settings of the model, the tokenizer or the vocabulary, or in their word
            vectors.
        UserError: the run to start from does not exist, or it is damaged.
    """
    if config.train.start_from is None:
        return
    run = RunDir(config.train.start_from)
    try:
        before = run.config()
    except UserError as error:
        raise type(error)(f"train.start_from: {error}; {PACKAGED_NEEDS}") from None
    for name in ("tokenizer", "vocab"):
        if getattr(before.data, name) != getattr(config.data, name):
            raise _other_settings(run, f"data.{name}")
    _check_vectors(run, before.model, config.model)
    run.check_best()
    try:
        run.load_model(config.model)
    except UserError:
        run.load_model(before.model)  # raises if the run is damaged
        raise _other_settings(run, "model") from None
    for key, (old, new) in before.model.changes_to(config.model).items():
        if not key.startswith(_MAY_DIFFER):
            log.warning("model.%s=%r: %s was trained with %r", key, new, run.path, old)


def set_pretrained(updater: Updater, config: Config, prepared: PreparedCorpus) -> list[str]:
    """Load the best weights of `train.start_from` into a new model. Returns lines for the log.

    Raises:
        UsageError: the run has other vocabularies, or vectors of another size.
        UserError: the run is damaged.
    """
    if config.train.start_from is None:
        return []
    run, model = RunDir(config.train.start_from), updater.model
    vocabs = {
        "source": (run.source_vocab(), prepared.source_vocab),
        "target": (run.target_vocab(), prepared.target_vocab),
    }
    for side, (before, now) in vocabs.items():
        if before != now:
            raise UsageError(
                f"train.start_from={run.path}: its {side} vocabulary has {len(before)} types and is not this corpus's, "
                f"which has {len(now)}; to train on other pairs, keep its corpus and add them with data.extra, which "
                "leaves the vocabularies as they are"
            )
    if vector_sizes(run.source_tokenizer()) != vector_sizes(prepared.source_tokenizer):
        raise UsageError(f"train.start_from={run.path}: its vectors differ in size from this corpus's")
    notes = [_set_weights(model, run)]
    if updater.reverse is not None:
        has_reverse = run.reverse.model_path.exists()
        notes.append(_set_weights(updater.reverse, run.reverse) if has_reverse else _WITHOUT_REVERSE.format(run.path))
    if updater.average:
        updater.average.restart()
    return notes


def _set_weights(model: Seq2Seq, run: RunDir) -> str:
    load_weights(model, run.load_best(), run.model_path)
    return f"{run.path}: training starts from its weights (update {run.best_metadata()['update']})"


def _check_vectors(run: RunDir, before: ModelConfig, now: ModelConfig) -> None:
    files = before.embedding.files()
    for side, path in now.embedding.files().items():
        if path != files.get(side):
            key = f"model.embedding.{side}_vectors"
            raise UsageError(
                f"{key}={path}: not read, because the embeddings are those of train.start_from={run.path}; set "
                f"{key}={files.get(side, 'null')}"
            )


def _other_settings(run: RunDir, section: str) -> UsageError:
    return UsageError(
        f"train.start_from={run.path}: its {section} settings differ from this run's; copy them from {run.config_path}"
    )
