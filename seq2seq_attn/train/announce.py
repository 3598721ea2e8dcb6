"""Log the device, the sizes, the faults of the text and the missing fast paths at the start of training."""

from __future__ import annotations

import logging

import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.prepare import dropped_pairs
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.model import speed
from seq2seq_attn.model.build import count_parameters
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.runtime.precision import Precision
from seq2seq_attn.text.vocab import SPECIALS
from seq2seq_attn.train.schedules import always_forces
from seq2seq_attn.train.validate import SPLIT as VALID

log = logging.getLogger(__name__)

MAX_DROPPED, MAX_OVERLAP = 0.05, 0.01
"""shares of training pairs that are dropped, and of other pairs that are in the training text too, that call for a
warning"""


def announce(
    config: Config,
    model: Seq2Seq,
    prepared: PreparedCorpus,
    *,
    device: torch.device,
    precision: Precision,
    num_processes: int,
    updates_per_epoch: int,
) -> None:
    """Log device, sizes, faults of the text and missing fast paths."""
    processes = f"{num_processes} processes, " if num_processes > 1 else ""
    num_threads = torch.get_num_threads()
    threads = f", {num_threads} {'thread' if num_threads == 1 else 'threads'}" if device.type == "cpu" else ""
    log.info("torch %s, %son %s%s, %s", torch.__version__, processes, device, threads, precision)
    num_train, num_valid = len(prepared.pairs("train")), len(prepared.pairs(VALID))
    counts = (count_parameters(model), num_train, num_valid, updates_per_epoch)
    log.info("%d parameters, %d training pairs, %d validation pairs, %d updates per epoch", *counts)
    _announce_faults(prepared)
    sizes = len(prepared.source_vocab), len(prepared.target_vocab)
    num_types = [size - len(SPECIALS) for size in sizes]
    log.info("vocabularies: %d source and %d target types, and %d special tokens", *num_types, len(SPECIALS))
    ratio = 1.0 if always_forces(config.train) else 0.0
    if speed.find("unroll", model, ratio) is None:
        log.info(
            "training: step by step, as there is no fast path for this combination of decoder, cell, attention, "
            "normalizer, dropout and teacher forcing"
        )
    if speed.find("steps", model, "fp32") is None:
        log.info(
            "translation: step by step, as there is no fast path for this combination of decoder, cell, attention, "
            "normalizer and output"
        )


def _announce_faults(prepared: PreparedCorpus) -> None:
    """Tell how many training pairs were dropped, and how many pairs of the other splits are in the training text
    too."""
    audit = prepared.audit
    if dropped := dropped_pairs(prepared):
        num_dropped, num_read = sum(dropped.values()), audit["train"]["pairs_read"]
        level = logging.WARNING if num_dropped > MAX_DROPPED * num_read else logging.INFO
        reasons = ", ".join(f"{count} because {reason}" for reason, count in dropped.items())
        log.log(level, "dropped from train: %d of %d pairs: %s", num_dropped, num_read, reasons)
    for split in (VALID, *prepared.test_splits):
        num_same, num_pairs = audit[split]["overlap_pairs"], audit[split]["pairs_kept"]
        if num_same > MAX_OVERLAP * num_pairs:
            text = "%s: %d of %d pairs are in the training text too: their scores say little about new text"
            log.warning(text, split, num_same, num_pairs)
