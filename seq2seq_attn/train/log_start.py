"""Log the start of a training session: device, sizes, problems of the text, and missing fast
implementations."""

import logging

import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.audit import describe_dropped
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.model import speed
from seq2seq_attn.model.build import count_parameters
from seq2seq_attn.run import Run
from seq2seq_attn.text.vocab import SPECIALS
from seq2seq_attn.train.checkpoint import TrainState
from seq2seq_attn.train.schedules import Schedules
from seq2seq_attn.train.update import Updater
from seq2seq_attn.train.validate import SPLIT as VALID

MAX_DROPPED = 0.05
"""the share of training pairs that may be dropped without a warning"""
MAX_OVERLAP = 0.01
"""the share of validation or test pairs that may occur in the training text without a warning"""

log = logging.getLogger(__name__)


def log_start(
    run: Run,
    config: Config,
    prepared: PreparedCorpus,
    updater: Updater,
    state: TrainState,
    schedules: Schedules,
) -> None:
    """Log device, sizes, problems of the text, and missing fast implementations.

    Args:
        state: the state from which the session starts.
    """
    start = "starts" if state.saved_at is None else f"continues after update {state.update}"
    log.info("%s: training %s", run.path, start)
    _log_device(updater)
    num_train = len(prepared.pairs("train"))
    num_valid = len(prepared.pairs(VALID))
    log.info(
        f"{count_parameters(updater.model)} parameters, {num_train} training pairs, {num_valid} "
        f"validation pairs, {schedules.updates_per_epoch} updates per epoch"
    )
    log_audit(prepared)
    num_source = len(prepared.source_vocab) - len(SPECIALS)
    num_target = len(prepared.target_vocab) - len(SPECIALS)
    log.info(
        f"vocabularies: {num_source} source and {num_target} target types, and {len(SPECIALS)} "
        "special tokens"
    )
    forcing = config.train.teacher_forcing
    is_forced = forcing.start == 1.0 and (forcing.schedule == "constant" or forcing.end == 1.0)
    missing = "%s: step by step, as there is no fast path for this combination of variants"
    if speed.find("unroll", updater.model, 1.0 if is_forced else 0.0) is None:
        log.info(missing, "training")
    if speed.find("steps", updater.model, "fp32") is None:
        log.info(missing, "translation")


def _log_device(updater: Updater) -> None:
    device = f"on {updater.device}"
    if updater.group.size > 1:
        device = f"{updater.group.size} processes, {device}"
    if updater.device.type == "cpu":
        device = f"{device}, threads: {torch.get_num_threads()}"
    log.info("torch %s, %s, %s", torch.__version__, device, updater.precision)


def log_audit(prepared: PreparedCorpus) -> None:
    """Log notes about the text and the number of dropped training pairs, and warn about splits that
    have pairs of the training text."""
    for note in prepared.meta["notes"]:
        log.info(note)
    audit = prepared.audit
    dropped = audit["train"]["dropped"]
    num_dropped = sum(dropped.values())
    if num_dropped:
        num_read = audit["train"]["pairs_read"]
        level = logging.WARNING if num_dropped > MAX_DROPPED * num_read else logging.INFO
        reasons = ", ".join(describe_dropped(dropped, prepared.meta["config"]))
        log.log(
            level,
            f"dropped from train: {num_dropped} of {num_read} pairs: {reasons}; see "
            "data.max_length and data.max_length_ratio",
        )
    for split in (VALID, *prepared.test_splits):
        num_same = audit[split]["overlap_pairs"]
        num_pairs = audit[split]["pairs_kept"]
        if num_same > MAX_OVERLAP * num_pairs:
            log.warning(
                f"{split}: {num_same} of {num_pairs} pairs are in the training text too: their "
                "scores say little about new text"
            )
