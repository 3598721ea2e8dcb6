"""Training logs: `train.log` and stderr, `metrics.jsonl`, TensorBoard events, and a progress
bar."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tqdm import tqdm

from seq2seq_attn.config import TrainConfig, name_numbers
from seq2seq_attn.files import finite
from seq2seq_attn.leftovers import naming
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.run import Run
from seq2seq_attn.train.checkpoint import TrainState, Window, perfect_score
from seq2seq_attn.train.events import open_events
from seq2seq_attn.train.schedules import Schedules, UpdateSettings
from seq2seq_attn.train.update import UpdateResult
from seq2seq_attn.train.validate import Validation

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
"""names of the values that go to TensorBoard as curves, by event"""
_SAMPLE_WIDTH = 100
"""maximum number of characters of a sample sentence in the log; with its label, the line fits a
terminal"""

log = logging.getLogger(__name__)
package_log = logging.getLogger("seq2seq_attn")


@dataclass(eq=False)
class TrainLog:
    """A context manager that logs a training run. Only the first rank writes files and shows a
    progress bar.

    Each line of `metrics.jsonl` is a JSON object. `event` is `train`, `validation`, `bad_update` or
    `end`. `update` is the number of complete updates. `epoch` is the number of complete epochs; in
    a `train` line, the number before the update. (The log and the progress bar show the current
    epoch, counted from 1.) Numbers that are not finite are null.

    A session that starts from a saved state removes the lines after `state.metrics_position`,
    because the session repeats the updates of these lines.
    """

    run: Run
    config: TrainConfig
    schedules: Schedules
    start: TrainState
    """the state from which this session starts"""
    _: KW_ONLY
    num_types: int
    """number of types of the target vocabulary"""
    writes: bool
    """whether to write files; true on the first rank"""

    def __post_init__(self) -> None:
        """Open the files and the progress bar."""
        total = self.schedules.total_updates
        counted = "{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} updates{postfix}"
        self._bar: tqdm[Any] = tqdm(
            total=total,
            initial=self.start.update,
            unit=" updates",
            dynamic_ncols=True,
            file=sys.stderr,
            disable=not (self.writes and sys.stderr.isatty()),
            bar_format=counted if total else None,
        )
        if self.writes:
            self._open_files(self.start)

    def _open_files(self, state: TrainState) -> None:
        """Open `metrics.jsonl`, the TensorBoard writer and `train.log`. For a resume, remove the
        lines of `metrics.jsonl` that were written after the saved state."""
        is_new = state.saved_at is None
        path = self.run.metrics_path
        self._stream = path.open("wb" if is_new else "ab")
        if not is_new:
            lines = path.read_bytes()[: state.metrics_position]
            kept = lines.rfind(b"\n") + 1  # length of the complete lines
            if kept < state.metrics_position:
                log.warning(
                    "%s: cut or changed: %d of the saved state's %d bytes remain; the learning "
                    "curve has a gap",
                    path,
                    kept,
                    state.metrics_position,
                )
            self._stream.truncate(kept)
            self._stream.seek(kept)
        purge_step = None if is_new else state.update + 1
        self._writer = open_events(self.run.path, purge_step)
        self._handler = _LogFile(self.run.log_path, mode="w" if is_new else "a", encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def __enter__(self) -> TrainLog:
        self._former_level = package_log.level
        if self.writes:
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
        if not self.writes:
            return
        package_log.removeHandler(self._handler)
        package_log.setLevel(self._former_level)
        # An error of closing, for example on a full disk, must not hide the error of the block.
        with suppress(OSError) if error else naming(self.run.path), ExitStack() as closed:
            for file in filter(None, (self._writer, self._stream, self._handler)):
                closed.callback(file.close)
            if isinstance(error, Exception):
                # The error goes only to the file, because the caller prints it to the terminal.
                record = log.makeRecord(log.name, logging.ERROR, "", 0, "%s", (error,), None)
                self._handler.handle(record)

    def applied(self, state: TrainState, epoch: int, settings: UpdateSettings) -> None:
        """Log an applied update: move the progress bar, and after every `train.log_every_updates`
        updates write a line. `epoch` is the number of complete epochs before the update."""
        window = state.window
        loss = window.loss_sum / window.num_tokens
        tokens_per_s = window.num_tokens / max(window.seconds, 1e-9)
        left = self._time_left(state)
        if not self._bar.disable:
            self._bar.set_description_str(f"epoch {epoch + 1}", refresh=False)
            shown = f"loss={loss:.3f} tokens/s={tokens_per_s:,.0f}{left}"
            self._bar.set_postfix_str(shown, refresh=False)
            self._bar.update(state.update - self._bar.n)
        if state.update % self.config.log_every_updates:
            return
        terms = window.mean_terms()
        objectives = {"objectives": terms} if terms else {}
        gradient_norm = window.gradient_norm_sum / window.num_updates
        self.event(
            "train",
            update=state.update,
            epoch=epoch,
            loss=loss,
            nll=window.nll_sum / window.num_tokens,
            gradient_norm=gradient_norm,
            **objectives,
            learning_rate=settings["learning_rate"],
            teacher_forcing_ratio=settings["teacher_forcing_ratio"],
            num_tokens=state.num_tokens,
            num_bad=state.num_bad,
            tokens_per_s=tokens_per_s,
            elapsed_s=state.elapsed_s,
        )
        shown_terms = "".join(f", {name} {mean:.4f}" for name, mean in terms.items())
        log.log(
            logging.INFO if self._bar.disable else logging.DEBUG,
            f"update {state.update}, epoch {epoch + 1}: loss {loss:.4f}{shown_terms}, gradient "
            f"norm {gradient_norm:.3f}, learning rate {settings['learning_rate']:.3g}, "
            f"{tokens_per_s:.0f} tokens/s{left}",
        )
        state.window = Window()

    def _time_left(self, state: TrainState) -> str:
        """Return a phrase with the time that is left until training reaches `max_minutes` or its
        last update. Return an empty text if neither is known."""
        left_s = math.inf
        if self.config.max_minutes:
            left_s = 60 * self.config.max_minutes - state.elapsed_s
        total = self.schedules.total_updates
        if total:
            left_s = min(left_s, state.elapsed_s / state.update * (total - state.update))
        if left_s == math.inf:
            return ""
        return f", about {_duration(max(0.0, left_s))} left"

    def skipped(
        self, state: TrainState, epoch: int, result: UpdateResult, indices: Sequence[int]
    ) -> str:
        """Log a skipped update. Return a text with the loss, the gradient norm and the training
        pairs of the update.

        Args:
            epoch: the number of complete epochs before the update.
            indices: the indices of the training pairs of the update.
        """
        loss = result.loss_sum / result.num_tokens
        self.event(
            "bad_update",
            update=state.update,
            epoch=epoch,
            loss=loss,
            gradient_norm=result.gradient_norm,
            in_row=state.num_bad_in_row,
            indices=list(indices),
        )
        pairs = name_numbers("training pair", indices)
        reason = f"loss {loss:g}, gradient norm {result.gradient_norm:g} on the batch of {pairs}"
        log.warning("the update after update %d is not finite: %s", state.update, reason)
        return reason

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
            ngram_shares=validation.ngram_shares,
            is_best=is_best,
            samples=validation.samples,
            seconds=seconds,
            elapsed_s=state.elapsed_s,
        )
        self.samples(validation.samples, update=state.update)
        perplexity = validation.scores["perplexity"]
        # The perplexity of an untrained model is about the number of types.
        has_diverged = not perplexity <= 2 * self.num_types
        shown = f"perplexity {perplexity:.3f}"
        metric = self.config.validation.metric
        if metric == "perplexity":
            metric = "bleu"
        if metric in validation.scores:  # a language model has no BLEU
            shown += f", {METRICS[metric].title} {validation.scores[metric]:.2f}"
        if is_best and not has_diverged:
            shown += " (best so far)"
        if validation.num_cut:
            shown += (
                f", {validation.num_cut} of {validation.num_pairs} hypotheses cut at the length "
                "limit"
            )
        log.info("validation at update %d: %s, %.1f s", state.update, shown, seconds)
        if has_diverged:
            log.warning(
                f"perplexity {perplexity:.4g} is worse than guessing among {self.num_types} "
                "target types: training diverges; lower "
                f"train.optimizer.learning_rate={self.config.optimizer.learning_rate:g}"
            )
        if validation.samples:  # metrics.jsonl and TensorBoard have all samples
            for name, text in validation.samples[0].items():
                if len(text) > _SAMPLE_WIDTH:
                    text = f"{text[: _SAMPLE_WIDTH - 1]}…"
                log.info("  %-10s  %s", name, text)

    def ended(self, state: TrainState) -> None:
        """Log the end of training: the reason, the best validation, and warnings about settings."""
        metric = self.config.validation.metric
        self.event(
            "end",
            update=state.update,
            epoch=state.epoch,
            reason=state.end_reason,
            metric=metric,
            best_score=state.best_score,
            best_update=state.best_update,
            best_num_cut=state.best_num_cut,
            elapsed_s=state.elapsed_s,
        )
        self._bar.close()  # now, so that the bar stays above the last line
        best = "none"
        if state.best_score is not None:
            best = f"{state.best_score:.3f} at update {state.best_update}"
        log.info(
            f"finished after {_duration(state.elapsed_s)}: {state.end_reason}; best validation "
            f"{metric}: {best}"
        )
        if state.best_num_cut:
            log.warning(
                f"hypotheses of that validation cut at the length limit: {state.best_num_cut}; "
                "train longer, or translate with a larger --max-length-ratio"
            )
        if "max_minutes" in str(state.end_reason) and self.schedules.is_cut(state.update):
            if state.best_score != perfect_score(metric):
                log.warning(
                    "training ended before the learning rate had fallen: "
                    f"train.schedule.name={self.config.schedule.name} was planned for "
                    f"{self.schedules.total_updates} updates, which translate better; for a "
                    f"training of this length, set train.max_updates={state.update}"
                )
        for name in self.schedules.late_objectives(state.best_update or 0):
            log.warning(
                f"the best model was saved before train.objectives.{name}.start, so the objective "
                "did not affect it"
            )

    def position(self) -> int:
        """Sync `metrics.jsonl` to disk and return its length in bytes. Return 0 on a rank that does
        not write."""
        if not self.writes:
            return 0
        with naming(self.run.metrics_path):
            self._stream.flush()
            os.fsync(self._stream.fileno())
        return self._stream.tell()

    def event(self, event: str, *, update: int, epoch: int, **values: Any) -> None:
        """Write a line to `metrics.jsonl`. Values in `CURVES` and the means of objectives also go
        to TensorBoard, as `event/name`."""
        if not self.writes:
            return
        line = {"event": event, "update": update, "epoch": epoch, **values}
        with naming(self.run.metrics_path):
            self._stream.write(json.dumps(finite(line), ensure_ascii=False).encode() + b"\n")
            self._stream.flush()
        if self._writer is None:
            return
        with naming(self.run.path):
            for name in CURVES.get(event, ()):
                if name in values:
                    self._writer.add_scalar(f"{event}/{name}", values[name], update)
            for name, mean in values.get("objectives", {}).items():
                self._writer.add_scalar(f"{event}/objectives/{name}", mean, update)

    def samples(self, samples: Sequence[Mapping[str, str]], *, update: int) -> None:
        """Write sample translations to TensorBoard."""
        if not self.writes or self._writer is None:
            return
        for number, sample in enumerate(samples, 1):
            # TensorBoard renders Markdown, in which an indent of four spaces marks code.
            lines = [f"    {name:10}  {text}" for name, text in sample.items()]
            with naming(self.run.path):
                self._writer.add_text(f"sample {number}", "\n".join(lines), update)


def _duration(seconds: float) -> str:
    """Return a time in words: `4.2 minutes`, or `3 hours 40 minutes` from an hour on."""
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{seconds / 60:.1f} minutes"
    return f"{minutes // 60} hours {minutes % 60} minutes"


class _LogFile(logging.FileHandler):
    """A log file. If a record cannot be written, training ends with an error of one line, instead
    of a traceback per record."""

    def handleError(self, record: logging.LogRecord) -> None:
        with naming(Path(self.baseFilename)):
            raise
