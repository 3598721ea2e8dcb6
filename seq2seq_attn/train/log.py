"""Training logs: `train.log` and stderr, `metrics.jsonl`, TensorBoard events, and a progress
bar."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from tqdm import tqdm

from seq2seq_attn.config import Config, TrainConfig
from seq2seq_attn.data.audit import describe_dropped
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.files import finite, naming
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.model import speed
from seq2seq_attn.model.build import count_parameters
from seq2seq_attn.run import Run
from seq2seq_attn.text.vocab import SPECIALS
from seq2seq_attn.train.checkpoint import TrainState, Window
from seq2seq_attn.train.schedules import Schedules, UpdateSettings
from seq2seq_attn.train.update import Updater, UpdateResult
from seq2seq_attn.train.validate import SPLIT as VALID
from seq2seq_attn.train.validate import Sample, Validation
from seq2seq_attn.translate.attention_map import draw_map

CURVES = {
    "train": (
        "loss",
        "nll",
        "gradient_norm",
        "learning_rate",
        "teacher_forcing_ratio",
        "tokens_per_s",
    ),
    "validation": ("perplexity", *METRICS, "num_cut"),
}
"""the values of each event that go to TensorBoard"""
MAX_DROPPED, MAX_OVERLAP = 0.05, 0.01
"""shares of training pairs that are dropped, and of other pairs that are in the training text too,
that call for a warning"""
_NUM_NAMED_PAIRS = 8
"""pair indices in a message; the rest is in metrics.jsonl"""
_SAMPLE_WIDTH = 100
"""characters of a sample sentence in the log, which fits a terminal with its label"""
_MAX_WEIGHTS = 12_000
"""in a picture of attention, for at most about 4 megapixels: those of 500 x 500 weights take 7 GB
and 100 s in TensorBoard"""

log = logging.getLogger(__name__)


class TrainLog:
    """A context manager that logs a training run. Only the first rank writes files and shows a
    progress bar.

    Each line of `metrics.jsonl` is a JSON object with `event` (`train`, `validation`, `bad_update`,
    `end`), `update`, the number of complete updates, and `epoch`, the number of complete epochs; in
    a `train` line, `epoch` is counted before the update. (The log and the bar show the current
    epoch, from 1.) Numbers that are not finite are null.

    A session that starts from a saved state removes the lines after `state.metrics_position`,
    because their updates are made again.
    """

    def __init__(
        self,
        run: Run,
        config: TrainConfig,
        schedules: Schedules,
        state: TrainState,
        *,
        num_types: int,
        writes: bool,
    ) -> None:
        """`state`: where this session starts. `num_types`: of the target vocabulary. `writes`: on
        the first rank."""
        self._run, self._config, self._schedules, self._num_types = (
            run,
            config,
            schedules,
            num_types,
        )
        self._writes = writes
        total = schedules.total_updates
        self._bar: tqdm[Any] = tqdm(
            total=total,
            initial=state.update,
            unit=" updates",
            dynamic_ncols=True,
            file=sys.stderr,
            disable=not (writes and sys.stderr.isatty()),
            bar_format="{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} updates{postfix}"
            if total
            else None,
        )
        if not writes:
            return
        from torch.utils.tensorboard import SummaryWriter  # slow to import

        path, is_new = run.metrics_path, state.saved_at is None
        self._stream = path.open("wb" if is_new else "ab")
        if not is_new:
            kept = path.read_bytes()[: state.metrics_position].rfind(b"\n") + 1  # whole lines
            if kept < state.metrics_position:
                text = "%s: cut or changed: %d of the saved state's %d bytes remain; the learning curve has a gap"
                log.warning(text, path, kept, state.metrics_position)
            self._stream.truncate(kept)
            self._stream.seek(kept)
        self._writer = SummaryWriter(str(run.path), purge_step=None if is_new else state.update + 1)
        self._handler = _LogFile(run.log_path, mode="w" if is_new else "a", encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def __enter__(self) -> TrainLog:
        package_log = logging.getLogger("seq2seq_attn")
        self._former_level = package_log.level
        if self._writes:
            package_log.addHandler(self._handler)
            if package_log.getEffectiveLevel() > logging.INFO:
                package_log.setLevel(logging.INFO)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()
        if not self._writes:
            return
        package_log = logging.getLogger("seq2seq_attn")
        package_log.removeHandler(self._handler)
        package_log.setLevel(self._former_level)
        # on a full disk, the error that led here matters
        with suppress(OSError) if error else naming(self._run.path), ExitStack() as closed:
            for opened in (self._writer, self._stream, self._handler):
                closed.callback(opened.close)
            if isinstance(error, Exception):
                # only to the file; the caller prints it to the terminal
                self._handler.handle(
                    log.makeRecord(log.name, logging.ERROR, "", 0, "%s", (error,), None)
                )

    def applied(self, state: TrainState, epoch: int, settings: UpdateSettings) -> None:
        """Log an applied update: move the bar, and after every `train.log_every_updates` write a
        line."""
        window, bar = state.window, self._bar
        loss, tokens_per_s = (
            window.loss_sum / window.num_tokens,
            window.num_tokens / max(window.seconds, 1e-9),
        )
        total, max_minutes = self._schedules.total_updates, self._config.max_minutes
        left_s = [] if max_minutes is None else [60 * max_minutes - state.elapsed_s]
        left_s += [] if total is None else [state.elapsed_s / state.update * (total - state.update)]
        left = f", about {max(0.0, min(left_s)) / 60:.1f} minutes left" if left_s else ""
        if not bar.disable:
            bar.set_description_str(f"epoch {epoch + 1}", refresh=False)
            bar.set_postfix_str(
                f"loss={loss:.3f} tokens/s={tokens_per_s:,.0f}{left}", refresh=False
            )
            bar.update(state.update - bar.n)
        if state.update % self._config.log_every_updates:
            return
        means = {
            name: total / count if count else math.nan
            for name, (total, count) in window.terms.items()
        }
        gradient_norm = window.gradient_norm_sum / window.num_updates
        values = {
            "loss": loss,
            "nll": window.nll_sum / window.num_tokens,
            "gradient_norm": gradient_norm,
            **({"objectives": means} if means else {}),
            "learning_rate": settings["learning_rate"],
            "teacher_forcing_ratio": settings["teacher_forcing_ratio"],
            "num_tokens": state.num_tokens,
            "num_bad": state.num_bad,
            "tokens_per_s": tokens_per_s,
            "elapsed_s": state.elapsed_s,
        }
        self.event("train", update=state.update, epoch=epoch, **values)
        text = "update %d, epoch %d: loss %.4f%s, gradient norm %.3f, learning rate %.3g, %.0f tokens/s%s"
        terms = "".join(f", {name} {mean:.4f}" for name, mean in means.items())
        shown = (
            state.update,
            epoch + 1,
            loss,
            terms,
            gradient_norm,
            settings["learning_rate"],
            tokens_per_s,
            left,
        )
        log.log(logging.INFO if bar.disable else logging.DEBUG, text, *shown)
        state.window = Window()

    def skipped(
        self, state: TrainState, epoch: int, result: UpdateResult, indices: Sequence[int]
    ) -> str:
        """Log a skipped update. Returns the reason, with the batch."""
        loss = result.loss_sum / result.num_tokens
        values = {
            "loss": loss,
            "gradient_norm": result.gradient_norm,
            "in_row": state.num_bad_in_row,
        }
        self.event("bad_update", update=state.update, epoch=epoch, **values, indices=list(indices))
        named = ", ".join(map(str, indices[:_NUM_NAMED_PAIRS]))
        more = (
            f" and {len(indices) - _NUM_NAMED_PAIRS} more"
            if len(indices) > _NUM_NAMED_PAIRS
            else ""
        )
        what = f"loss {loss:g}, gradient norm {result.gradient_norm:g} on the batch of training pairs {named}{more}"
        log.warning("the update after update %d is not finite: %s", state.update, what)
        return what

    def validated(
        self, state: TrainState, validation: Validation, *, is_best: bool, seconds: float
    ) -> None:
        """Log a validation."""
        self.event(
            "validation",
            update=state.update,
            epoch=state.epoch,
            **validation.scores,
            signature=validation.signature,
            num_pairs=validation.num_pairs,
            num_cut=validation.num_cut,
            is_best=is_best,
            samples=[sample.texts() for sample in validation.samples],
            seconds=seconds,
            elapsed_s=state.elapsed_s,
        )
        self.samples(validation.samples, update=state.update)
        perplexity, metric = validation.scores["perplexity"], self._config.validation.metric
        metric = "bleu" if metric == "perplexity" else metric
        has_diverged = (
            not perplexity <= 2 * self._num_types
        )  # an untrained model has about their number
        best = " (best so far)" if is_best and not has_diverged else ""
        cut = f", {validation.num_cut} of {validation.num_pairs} hypotheses cut at the length limit"
        shown = (
            f", {METRICS[metric].title} {validation.scores[metric]:.2f}"
            if metric in validation.scores
            else ""
        )
        text = "validation at update %d: perplexity %.3f%s%s%s, %.1f s"
        log.info(
            text, state.update, perplexity, shown, best, cut if validation.num_cut else "", seconds
        )
        if has_diverged:
            log.warning(
                "perplexity %.4g is worse than guessing among %d target types: training diverges; "
                "lower train.optimizer.learning_rate=%g",
                *(perplexity, self._num_types, self._config.optimizer.learning_rate),
            )
        for sample in validation.samples[
            :1
        ]:  # only the first; all are in metrics.jsonl and TensorBoard
            for name, text in sample.texts().items():
                log.info(
                    "  %-10s  %s",
                    name,
                    text if len(text) <= _SAMPLE_WIDTH else f"{text[: _SAMPLE_WIDTH - 1]}…",
                )

    def ended(self, state: TrainState) -> None:
        """Log the end of training."""
        metric, reason = self._config.validation.metric, state.end_reason
        values: dict[str, Any] = {"reason": reason, "metric": metric}
        values |= {"best_score": state.best_score, "best_update": state.best_update}
        values |= {"best_num_cut": state.best_num_cut, "elapsed_s": state.elapsed_s}
        self.event("end", update=state.update, epoch=state.epoch, **values)
        self._bar.close()  # so that it stays above the last line
        best = (
            "none"
            if state.best_score is None
            else f"{state.best_score:.3f} at update {state.best_update}"
        )
        log.info(
            "finished after %.1f min: %s; best validation %s: %s",
            state.elapsed_s / 60,
            reason,
            metric,
            best,
        )
        if state.best_num_cut:
            text = "the length limit cut %d hypotheses of that validation; train longer, or translate with a larger %s"
            log.warning(text, state.best_num_cut, "--max-length-ratio")
        schedules = self._schedules
        if schedules.is_cut(state.update):
            log.warning(
                "training ended before the learning rate had fallen: train.schedule.name=%s was "
                "planned for %d updates; to train for this long, set train.max_updates=%d",
                *(self._config.schedule.name, schedules.total_updates, state.update),
            )
        for name in schedules.late_objectives(state.best_update or 0):
            log.warning(
                "the best model was saved before train.objectives.%s.start, so the objective did "
                "not affect it",
                name,
            )

    def position(self) -> int:
        """The length of `metrics.jsonl` in bytes, after syncing it to disk; 0 on a rank that does
        not write."""
        if not self._writes:
            return 0
        with naming(self._run.metrics_path):
            self._stream.flush()
            os.fsync(self._stream.fileno())
        return self._stream.tell()

    def event(self, event: str, *, update: int, epoch: int, **values: Any) -> None:
        """Add a line. Numbers that form a curve also go to TensorBoard, as `event/name`."""
        if not self._writes:
            return
        line = {"event": event, "update": update, "epoch": epoch, **values}
        with naming(self._run.metrics_path):
            self._stream.write(json.dumps(finite(line), ensure_ascii=False).encode() + b"\n")
            self._stream.flush()
        with naming(self._run.path):
            curves = {name: values[name] for name in CURVES.get(event, ()) if name in values}
            curves |= {
                f"objectives/{name}": mean for name, mean in values.get("objectives", {}).items()
            }
            for name, value in curves.items():
                self._writer.add_scalar(f"{event}/{name}", value, update)

    def samples(self, samples: Sequence[Sample], *, update: int) -> None:
        """Show a few sentences in TensorBoard, with their attention as pictures."""
        if not self._writes:
            return
        for number, sample in enumerate(samples, 1):
            # indented by four spaces, so that Markdown takes sentences as code
            shown = "\n".join(f"    {name:10}  {text}" for name, text in sample.texts().items())
            with naming(self._run.path):
                self._writer.add_text(f"sample {number}", shown, update)
                if (
                    sample.attention is not None
                    and sample.attention.weights_TS.size <= _MAX_WEIGHTS
                ):
                    picture = draw_map(sample.attention)
                    self._writer.add_image(
                        f"attention/sample {number}", picture, update, dataformats="HWC"
                    )


def log_start(
    run: Run,
    config: Config,
    prepared: PreparedCorpus,
    updater: Updater,
    state: TrainState,
    schedules: Schedules,
) -> None:
    """Log device, sizes, faults of the text and missing fast paths, at the start of a session."""
    start = "starts" if state.saved_at is None else f"continues after update {state.update}"
    log.info("%s: training %s", run.path, start)
    model, device, num_processes = updater.model, updater.device, updater.group.size
    processes = f"{num_processes} processes, " if num_processes > 1 else ""
    num_threads = torch.get_num_threads()
    threads = (
        f", {num_threads} {'thread' if num_threads == 1 else 'threads'}"
        if device.type == "cpu"
        else ""
    )
    log.info(
        "torch %s, %son %s%s, %s", torch.__version__, processes, device, threads, updater.precision
    )
    num_train, num_valid = len(prepared.pairs("train")), len(prepared.pairs(VALID))
    counts = (count_parameters(model), num_train, num_valid, schedules.updates_per_epoch)
    log.info("%d parameters, %d training pairs, %d validation pairs, %d updates per epoch", *counts)
    audit = prepared.audit
    if dropped := describe_dropped(prepared.audit["train"]["dropped"], prepared.meta["config"]):
        num_dropped, num_read = sum(dropped.values()), audit["train"]["pairs_read"]
        level = logging.WARNING if num_dropped > MAX_DROPPED * num_read else logging.INFO
        reasons = ", ".join(f"{count} because {reason}" for reason, count in dropped.items())
        log.log(level, "dropped from train: %d of %d pairs: %s", num_dropped, num_read, reasons)
    for split in (VALID, *prepared.test_splits):
        num_same, num_pairs = audit[split]["overlap_pairs"], audit[split]["pairs_kept"]
        if num_same > MAX_OVERLAP * num_pairs:
            text = "%s: %d of %d pairs are in the training text too: their scores say little about new text"
            log.warning(text, split, num_same, num_pairs)
    num_types = [
        len(vocab) - len(SPECIALS) for vocab in (prepared.source_vocab, prepared.target_vocab)
    ]
    log.info(
        "vocabularies: %d source and %d target types, and %d special tokens",
        *num_types,
        len(SPECIALS),
    )
    forcing = config.train.teacher_forcing
    is_forced = forcing.start == 1.0 and (forcing.schedule == "constant" or forcing.end == 1.0)
    paths = {"training": ("unroll", 1.0 if is_forced else 0.0), "translation": ("steps", "fp32")}
    for task, (path, setting) in paths.items():
        if speed.find(path, model, setting) is None:
            log.info(
                "%s: step by step, as there is no fast path for this combination of variants", task
            )


class _LogFile(logging.FileHandler):
    """A log file that ends training with one line if it cannot be written, instead of a traceback
    per record."""

    def handleError(self, record: logging.LogRecord) -> None:
        with naming(Path(self.baseFilename)):
            raise
