"""Start from the weights of another run (`train.start_from`): pretraining on other pairs, or a second stage. The run is
read only when training starts, so a resumed or moved run does not need it."""

from __future__ import annotations

from seq2seq_attn.config import Config
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import load_weights
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.update import Updater


def check_pretrained(config: Config) -> None:
    """Check what can be known before data is prepared.

    Raises:
        UsageError: the run's model or tokenizer is another.
        UserError: there is no run, or it is damaged.
    """
    if config.train.start_from is None:
        return
    run = RunDir(config.train.start_from)
    before = run.config()
    for name in ("tokenizer", "vocab"):
        if getattr(before.data, name) != getattr(config.data, name):
            raise UsageError(
                f"train.start_from={run.path}: its data.{name} is another; repeat its settings, which are in "
                f"{run.path}/config.yaml"
            )
    run.load_model(config.model)


def set_pretrained(updater: Updater, config: Config, prepared: PreparedCorpus) -> list[str]:
    """Put the best weights of that run into a new model; a line for the log.

    Raises:
        UsageError: its vocabularies are others.
        UserError: it is damaged.
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
                f"which has {len(now)}; give pairs beside those of its corpus as data.extra, which leaves the "
                "vocabularies as they are"
            )
    load_weights(model, run.load_best(), run.model_path)
    if updater.average:
        updater.average.restart()
    return [f"{run.path}: its weights (update {run.best_metadata()['update']}) are the start"]
