"""The events of a training run, for the log, `metrics.jsonl` with TensorBoard, and the progress bar."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import Any

import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.prepare import dropped_pairs
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.model import speed
from seq2seq_attn.model.build import count_parameters
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.text.vocab import SPECIALS
from seq2seq_attn.train.runlog import Progress, RunLog
from seq2seq_attn.train.schedules import Schedules, always_forces
from seq2seq_attn.train.state import TrainState, Window
from seq2seq_attn.train.update import Updater, UpdateResult
from seq2seq_attn.train.validate import SPLIT as VALID
from seq2seq_attn.train.validate import Validation

log = logging.getLogger(__name__)

MAX_DROPPED, MAX_OVERLAP = 0.05, 0.01
"""shares of training pairs that are dropped, and of other pairs that are in the training text too, that call for a
warning"""
_NUM_NAMED_PAIRS = 8
"""pair indices in a message; the rest is in metrics.jsonl"""
_SAMPLE_TEXTS = ("source", "reference", "hypothesis")
_SAMPLE_WIDTH = 100
"""characters of a sample sentence in the log, which fits a terminal with its label"""


class TrainLog:
    """The log of a training run."""

    def __init__(
        self, run_log: RunLog | None, progress: Progress, config: Config, schedules: Schedules, *, num_types: int
    ) -> None:
        """`run_log`: None for a rank that does not write. `num_types`: the size of the target vocabulary."""
        self._run_log = run_log
        self._progress = progress
        self._config = config
        self._schedules = schedules
        self._num_types = num_types

    def applied(self, state: TrainState, epoch: int, *, learning_rate: float, teacher_forcing_ratio: float) -> None:
        """Log an applied update: move the bar, and after every `train.log_every_updates` write a line."""
        window = state.window
        loss, tokens_per_s = window.loss_sum / window.num_tokens, window.num_tokens / max(window.seconds, 1e-9)
        self._progress.step(update=state.update, epoch=epoch, loss=loss, tokens_per_s=tokens_per_s)
        if state.update % self._config.train.log_every_updates:
            return
        values = {
            "loss": loss,
            "nll": window.nll_sum / window.num_tokens,
            "gradient_norm": window.gradient_norm_sum / window.num_updates,
            **({"objectives": window.means()} if window.terms else {}),
            "learning_rate": learning_rate,
            "teacher_forcing_ratio": teacher_forcing_ratio,
            "num_tokens": state.num_tokens,
            "num_bad": state.num_bad,
            "tokens_per_s": tokens_per_s,
            "elapsed_s": state.elapsed_s,
        }
        self._event("train", state, epoch=epoch, **values)
        level = logging.DEBUG if self._progress.is_shown else logging.INFO
        text = "update %d, epoch %d: loss %.4f%s, gradient norm %.3f, learning rate %.3g, %.0f tokens/s"
        terms = "".join(f", {name} {mean:.4f}" for name, mean in window.means().items())
        shown = (values["loss"], terms, values["gradient_norm"], learning_rate, tokens_per_s)
        log.log(level, text, state.update, epoch + 1, *shown)
        state.window = Window()

    def skipped(self, state: TrainState, epoch: int, result: UpdateResult, indices: Sequence[int]) -> str:
        """Log a skipped update. Returns the reason, with the batch."""
        loss = result.loss_sum / result.num_tokens
        self._event(
            "bad_update",
            state,
            epoch=epoch,
            loss=loss,
            gradient_norm=result.gradient_norm,
            in_row=state.num_bad_in_row,
            indices=list(indices),
        )
        named = ", ".join(map(str, indices[:_NUM_NAMED_PAIRS]))
        more = f" and {len(indices) - _NUM_NAMED_PAIRS} more" if len(indices) > _NUM_NAMED_PAIRS else ""
        what = f"loss {loss:g}, gradient norm {result.gradient_norm:g} on the batch of training pairs {named}{more}"
        log.warning("the update after update %d is not finite: %s", state.update, what)
        return what

    def validated(self, state: TrainState, validation: Validation, *, is_best: bool, seconds: float) -> None:
        """Log a validation."""
        self._event(
            "validation",
            state,
            epoch=state.epoch,
            perplexity=validation.perplexity,
            bleu=validation.bleu,
            **validation.other,
            signature=validation.signature,
            num_pairs=validation.num_pairs,
            num_cut=validation.num_cut,
            is_best=is_best,
            samples=[{name: getattr(sample, name) for name in _SAMPLE_TEXTS} for sample in validation.samples],
            seconds=seconds,
            elapsed_s=state.elapsed_s,
        )
        if self._run_log:
            self._run_log.samples(validation.samples, update=state.update)
        has_diverged = self._has_diverged(validation.perplexity)
        best = " (best so far)" if is_best and not has_diverged else ""
        cut = (
            f", {validation.num_cut} of {validation.num_pairs} hypotheses cut at the length limit"
            if validation.num_cut
            else ""
        )
        shown = "".join(
            f", {METRICS[name].title} {score:.2f}"
            for name, score in (validation.other or {"bleu": validation.bleu}).items()
        )
        text = "validation at update %d: perplexity %.3f%s%s%s, %.1f s"
        log.info(text, state.update, validation.perplexity, shown, best, cut, seconds)
        if has_diverged:
            log.warning(
                "perplexity %.4g is worse than guessing among %d target types: training diverges; lower"
                " train.optimizer.learning_rate=%g",
                *(validation.perplexity, self._num_types, self._config.train.optimizer.learning_rate),
            )
        for sample in validation.samples[:1]:  # only the first; all are in metrics.jsonl and TensorBoard
            for name in _SAMPLE_TEXTS:
                log.info("  %-10s  %s", name, _shortened(getattr(sample, name)))

    def ended(self, state: TrainState) -> None:
        """Log the end of training."""
        metric, reason = self._config.train.validation.metric, state.finished
        values: dict[str, Any] = {"reason": reason, "metric": metric}
        values |= {"best_score": state.best_score, "best_update": state.best_update}
        values |= {"best_num_cut": state.best_num_cut, "elapsed_s": state.elapsed_s}
        self._event("end", state, epoch=state.epoch, **values)
        self._progress.close()  # so that it stays above the last line
        best = "none" if state.best_score is None else f"{state.best_score:.3f} at update {state.best_update}"
        log.info("finished after %.1f min: %s; best validation %s: %s", state.elapsed_s / 60, reason, metric, best)
        if state.best_num_cut:
            text = "the length limit cut %d hypotheses of that validation; train longer, or translate with a larger %s"
            log.warning(text, state.best_num_cut, "--max-length-ratio")
        schedules = self._schedules
        if schedules.is_cut(state.update):
            log.warning(
                "training ended before the learning rate had fallen: train.schedule.name=%s was planned for %d "
                "updates; to train for this long, set train.max_updates=%d",
                *(self._config.train.schedule.name, schedules.total_updates, state.update),
            )
        for name in schedules.late_objectives(state.best_update or 0):
            log.warning(
                "the best model was saved before train.objectives.%s.start, so the objective did not affect it", name
            )
        if state.best_rank is not None and self._has_diverged(-state.best_rank[1]):
            log.warning("the best model is worse than guessing: training diverged; lower the learning rate")

    def position(self) -> int:
        """The length of `metrics.jsonl` in bytes, after syncing it to disk; 0 on a rank that does not write."""
        return 0 if self._run_log is None else self._run_log.position()

    def _event(self, event: str, state: TrainState, *, epoch: int, **values: Any) -> None:
        if self._run_log:
            self._run_log.event(event, update=state.update, epoch=epoch, **values)

    def _has_diverged(self, perplexity: float) -> bool:
        """Whether perplexity exceeds twice the number of target types. That of an untrained model is about their
        number."""
        return not perplexity <= 2 * self._num_types


@contextmanager
def open_log(
    run: RunDir,
    config: Config,
    state: TrainState,
    schedules: Schedules,
    *,
    num_types: int,
    is_first: bool,
) -> Iterator[TrainLog]:
    """The log of a session that starts at `state`. On the first rank it writes to the run. `num_types`: the size of the
    target vocabulary."""
    position = None if state.saved_at is None else state.metrics_position
    total_updates = schedules.total_updates
    minutes = config.train.max_minutes
    end_s = None if minutes is None else 60 * minutes - state.elapsed_s
    with (
        RunLog(run.path, position=position, update=state.update) if is_first else nullcontext() as run_log,
        closing(Progress(update=state.update, total_updates=total_updates, end_s=end_s, is_shown=is_first)) as progress,
    ):
        yield TrainLog(run_log, progress, config, schedules, num_types=num_types)


def log_start(
    run: RunDir, config: Config, state: TrainState, updater: Updater, prepared: PreparedCorpus, schedules: Schedules
) -> None:
    """Log device, sizes, faults of the text and missing fast paths, at the start of a session."""
    start = "starts" if state.saved_at is None else f"continues after update {state.update}"
    log.info("%s: training %s", run.path, start)
    if updater.reverse is not None:
        log.info("%s: saves the target-to-source model with each new best model", run.reverse.path)
    model, device, num_processes = updater.model, updater.device, updater.group.size
    processes = f"{num_processes} processes, " if num_processes > 1 else ""
    num_threads = torch.get_num_threads()
    threads = f", {num_threads} {'thread' if num_threads == 1 else 'threads'}" if device.type == "cpu" else ""
    log.info("torch %s, %son %s%s, %s", torch.__version__, processes, device, threads, updater.precision)
    num_train, num_valid = len(prepared.pairs("train")), len(prepared.pairs(VALID))
    counts = (count_parameters(model), num_train, num_valid, schedules.updates_per_epoch)
    log.info("%d parameters, %d training pairs, %d validation pairs, %d updates per epoch", *counts)
    _log_faults(prepared)
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


def _log_faults(prepared: PreparedCorpus) -> None:
    """Log how many training pairs were dropped, and how many pairs of the other splits are in the training text
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


def _shortened(text: str) -> str:
    return text if len(text) <= _SAMPLE_WIDTH else text[: _SAMPLE_WIDTH - 1] + "…"
