"""The training loop: epochs of updates, with logging, validation and checkpoints in between.

With several processes every rank runs it; the first one alone writes, and what a rank decides by (the clock, a signal)
is agreed upon first.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from pathlib import Path

import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.memory import (
    TRAINING_PRIMITIVES,
    RegularGiveBack,
    give_back_memory,
    keep_primitives,
    reuse_large_blocks,
)
from seq2seq_attn.runtime.precision import allow_tf32, resolve_precision
from seq2seq_attn.train import checkpoint
from seq2seq_attn.train.announce import announce
from seq2seq_attn.train.batches import EpochBatches, UpdateBatches
from seq2seq_attn.train.distributed import ALONE, Group, join_group, local_device
from seq2seq_attn.train.lock import locked
from seq2seq_attn.train.plan import Plan
from seq2seq_attn.train.record import Record
from seq2seq_attn.train.runlog import Progress, RunLog
from seq2seq_attn.train.signals import StopRequest, catch_signals
from seq2seq_attn.train.start import check_start, compare_sessions, with_length_limit
from seq2seq_attn.train.state import TrainState
from seq2seq_attn.train.update import Updater, UpdateResult
from seq2seq_attn.train.validate import Interrupted, Validator

log = logging.getLogger(__name__)


def train(config: Config, *, run_dir: Path | None = None, resume: bool = False, overwrite: bool = False) -> RunDir:
    """Train as configured and leave a run directory, preparing the data first if that was not done. Started by
    `torchrun`, all its processes train one model together.

    Args:
        config: all settings. To resume with a run's own, load them from its `config.yaml`.
        run_dir: where to; None: `runs/<date>-<name>-s<seed>`, or, to resume, the newest unfinished run.
        resume: go on from the last saved state, exactly (from the start if none was saved).
        overwrite: replace a run that is there.

    Raises:
        UsageError: the directory holds a run and neither `resume` nor `overwrite` was given; settings that cannot be.
        UserError: data that cannot be had, a damaged state, out of memory, too many non-finite updates in a row, a
            directory that another training writes to.
        KeyboardInterrupt: on Ctrl-C, after saving.
        SystemExit: 143 on SIGTERM, 129 on SIGHUP, after saving.
    """
    keep_primitives(TRAINING_PRIMITIVES)
    reuse_large_blocks()
    with join_group() as group:
        path = group.from_first(lambda: check_start(config, run_dir, resume=resume, overwrite=overwrite))
        prepared = group.first_before_others(lambda: prepare_corpus(config, show_progress=sys.stderr.isatty()))
        if config.train.num_threads:
            torch.set_num_threads(config.train.num_threads)
        with catch_signals() as stop, ExitStack() as lock:
            trainer = Trainer(config, RunDir(path), prepared, stop, group)
            group.from_first(lambda: lock.enter_context(locked(path)))
            trainer.train(resume=resume, overwrite=overwrite)
    return trainer.run


class Trainer:
    """One training: the model, where it stands, and what happens between updates."""

    def __init__(
        self, config: Config, run: RunDir, prepared: PreparedCorpus, stop: StopRequest, group: Group = ALONE
    ) -> None:
        self._pairs = prepared.pairs("train")
        self._config = config = with_length_limit(config, self._pairs)
        self.run = run
        self._prepared = prepared
        self._stop = stop
        self._group = group
        self._device = local_device(config.train.device)
        self._precision = resolve_precision(config.train.precision, self._device)
        allow_tf32(self._precision, self._device)
        torch.manual_seed(config.seed)
        self._model = build_model(
            config.model, num_source_ids=len(prepared.source_vocab), num_target_ids=len(prepared.target_vocab)
        ).to(self._device)
        if not group.is_first:
            torch.manual_seed(group.own_seed(config.seed))  # the weights are alike, what dropout drops is not
        device, precision = self._device, self._precision
        self._updater = Updater(self._model, config.train, device=device, precision=precision, group=group)
        self._validator = Validator(
            prepared, config, device=device, precision=precision, should_stop=lambda: stop.is_set, group=group
        )
        self._updates_per_epoch = self._epoch(0).num_updates
        self._plan = Plan(config.train, updates_per_epoch=self._updates_per_epoch)
        self._state = TrainState()
        self._saved_at = 0
        self._give_back_memory = RegularGiveBack()
        self._finished: str | None = None
        self._session_began_at = time.monotonic()

    def train(self, *, resume: bool = False, overwrite: bool = False) -> None:
        """Train to the end, or until a signal; from the beginning, or from the last saved state if there is one."""
        can_go_on = self._group.from_first(lambda: resume and checkpoint.has_state(self.run.last_dir))
        with checkpoint.refusing_foreign(self.run.last_dir):
            position = self._load() if can_go_on else None
        if self._finished and self._stop_reason():
            if self._group.is_first and not self.run.is_finished():
                self._mark_finished()
            log.info("%s: finished (%s); to go on, raise that limit with --set", self.run.path, self._stop_reason())
            return
        self._finished = None
        if self._group.is_first:
            self._open_run(is_new=position is None, overwrite=overwrite or resume)
        self._session_began_at = time.monotonic() - self._state.elapsed_s
        with self._open_log(position) as self._run_log, closing(self._progress()) as progress:
            self._record = Record(self._run_log, progress, self._config, num_types=len(self._prepared.target_vocab))
            self._announce(is_new=position is None)
            if position is None:
                self._save()  # from here on there is something to resume
            self._loop()

    def _open_run(self, *, is_new: bool, overwrite: bool) -> None:
        if is_new:
            self.run = RunDir.create(self.run.path, overwrite=overwrite)
            self.run.save_config(self._config)
            self.run.save_text(self._prepared)
            self.run.write_environment(sys.argv, self._device)
        else:
            self.run.reopen(self._config)

    def _open_log(self, position: int | None) -> AbstractContextManager[RunLog | None]:
        if not self._group.is_first:
            return nullcontext()
        return RunLog(self.run.path, position=position, update=self._state.update)

    def _loop(self) -> None:
        self._after_update()  # a validation may have been interrupted
        while self._stop_reason() is None:
            epoch = self._epoch(self._state.epoch)
            with closing(epoch.updates(self._state.batches_done)) as updates:
                began_at = time.monotonic()
                for batches in updates:
                    self._update(batches, num_batches_of_epoch=len(epoch), began_at=began_at)
                    self._after_update()
                    if self._stop_reason() is not None:
                        break
                    began_at = time.monotonic()
        self._finish()

    def _update(self, batches: UpdateBatches, *, num_batches_of_epoch: int, began_at: float) -> None:
        state = self._state
        epoch = state.epoch
        rate = self._plan.learning_rate(state.update, plateau_factor=state.plateau.factor)
        ratio = self._plan.teacher_forcing_ratio(state.update)
        result = self._updater.make(batches, update=state.update, learning_rate=rate, teacher_forcing_ratio=ratio)
        state.take_batches(len(batches.indices), num_batches_of_epoch=num_batches_of_epoch)
        self._count_time()
        state.window.seconds += time.monotonic() - began_at
        if result.kind == "made":
            state.take_update(result.num_tokens, result.loss_sum, result.nll_sum, result.gradient_norm)
            every = self._config.train.log_every_updates
            self._record.made(state, epoch, log_every=every, learning_rate=rate, teacher_forcing_ratio=ratio)
        elif result.kind == "bad":
            self._take_bad_update([index for indices in batches.indices for index in indices], result, epoch)

    def _take_bad_update(self, indices: list[int], result: UpdateResult, epoch: int) -> None:
        state = self._state
        state.num_bad += 1
        state.num_bad_in_row += 1
        what = self._record.bad(state, epoch, result, indices)
        if state.num_bad_in_row >= self._config.train.max_bad_steps:
            raise UserError(
                f"{state.num_bad_in_row} updates in a row skipped: loss or gradient not finite; the last:"
                f" {what}. {self.run.last_dir} holds the last good state (update {self._saved_at}): resume it with"
                f" --set train.optimizer.learning_rate={self._config.train.optimizer.learning_rate / 2:g}"
                " or --precision fp32"
            )

    def _after_update(self) -> None:
        """Between updates: validate and save where that is due, leave where a signal says so."""
        update = self._state.update
        self._give_back_memory()
        is_due = self._state.is_validation_due(self._config.train.validation)
        if is_due and self._validate():
            self._save()
        elif update != self._saved_at and update % self._config.train.checkpoint_every_updates == 0:
            self._save()
        if self._agree_to_stop():
            self._save()
            log.info("state of update %d saved; go on with --resume --run-dir %s", update, self.run.path)
            self._stop.leave()

    def _agree_to_stop(self) -> bool:
        """Whether a signal has reached any rank, or `torchrun` is gone. The clock is set to the latest of all, as a
        limit of minutes ends the loop: all must leave it together."""
        if self._group.is_orphaned and not self._stop.is_set:
            log.error("torchrun (process %d) is gone: saving, then leaving", self._group.launcher)
            self._stop.signal_number = signal.SIGTERM
        elapsed_s, signal_number = self._group.largest([self._state.elapsed_s, self._stop.signal_number or 0])
        self._state.elapsed_s = elapsed_s
        if signal_number:
            self._stop.signal_number = int(signal_number)
        return signal_number > 0

    def _validate(self) -> bool:
        """Validate, keep the model if it is the best; False: a signal came in between, and nothing is noted."""
        state, settings = self._state, self._config.train.validation
        began_at = time.monotonic()
        give_back_memory()  # what an update leaves free is of other sizes than what translating asks for
        average = self._updater.average
        with average.swapped_in() if average else nullcontext():
            try:
                found = self._validator.validate(self._model)
            except Interrupted:
                return False
            is_best = state.take_validation(
                bleu=found.bleu, perplexity=found.perplexity, num_cut=found.num_cut, config=settings
            )
            if is_best and self._group.is_first:
                about = {
                    "update": state.update,
                    "epoch": state.epoch,
                    "bleu": found.bleu,
                    "perplexity": found.perplexity,
                }
                self.run.save_best(self._model.state_dict(), {key: str(value) for key, value in about.items()})
        state.plateau.see(is_best, self._config.train.schedule)
        give_back_memory()
        self._count_time()
        self._record.validated(state, found, is_best=is_best, seconds=time.monotonic() - began_at)
        return True

    def _finish(self) -> None:
        """Validate what was not, say the last word, save."""
        if self._state.validated_at != self._state.update and not self._validate():
            self._after_update()
        self._finished = self._stop_reason()
        self._record.ended(self._state, self._finished)
        self._save()
        if self._group.is_first:
            self._mark_finished()

    def _mark_finished(self) -> None:
        state = self._state
        about = {
            "reason": self._finished,
            "update": state.update,
            "epoch": state.epoch,
            "minutes": state.elapsed_s / 60,
        }
        self.run.mark_finished({**about, "best_score": state.best_score, "best_update": state.best_update})

    def _save(self) -> None:
        self._saved_at = self._state.update
        rng_tensors, rng_values = checkpoint.joined_rng_states(self._group.gather(checkpoint.rng_state(self._device)))
        if self._run_log is None:
            return
        values = {
            "state": self._state.to_dict(),
            "finished": self._finished,
            "config": self._config.model_dump(mode="json"),
            "corpus": self._prepared.meta["hash"],
            "metrics_position": self._run_log.position(),
            "rng": rng_values,
            "num_threads": torch.get_num_threads(),
            "num_processes": self._group.size,
            **self._updater.values(),
        }
        checkpoint.save_state(self.run.last_dir, self._updater.tensors() | rng_tensors, values)

    def _load(self) -> int:
        """Take up the last state; the length of `metrics.jsonl` that belongs to it."""
        tensors, values = checkpoint.load_state(self.run.last_dir)
        if values["corpus"] != self._prepared.meta["hash"]:
            raise UserError(
                f"{self._prepared.directory}: not the corpus that {self.run.path} was begun with (its content hash"
                " differs); put the same text and tokenizer versions back, or start a new run"
            )
        compare_sessions(values, device=self._device, num_processes=self._group.size)
        self._updater.load(tensors, values)
        if self._group.rank < values.get("num_processes", 1):
            checkpoint.set_rng_state(tensors, values["rng"], self._device, rank=self._group.rank)
        self._state = TrainState.from_dict(values["state"])
        self._finished = values["finished"]
        self._saved_at = self._state.update
        return int(values["metrics_position"])

    def _epoch(self, epoch: int) -> EpochBatches:
        config = self._config
        return EpochBatches(
            self._pairs,
            config.train.batch,
            seed=config.seed,
            epoch=epoch,
            stitch=config.data.stitch,
            group=self._group,
            prepare=self._updater.prepare,
        )

    def _stop_reason(self) -> str | None:
        return self._state.stop_reason(self._config.train)

    def _count_time(self) -> None:
        self._state.elapsed_s = time.monotonic() - self._session_began_at

    def _progress(self) -> Progress:
        minutes = self._config.train.max_minutes
        end_s = None if minutes is None else 60 * minutes - self._state.elapsed_s
        total = self._plan.total_updates
        is_shown = self._group.is_first
        return Progress(update=self._state.update, total_updates=total, end_s=end_s, is_shown=is_shown)

    def _announce(self, *, is_new: bool) -> None:
        log.info("%s: %s", self.run.path, "begins" if is_new else f"goes on after update {self._state.update}")
        announce(
            self._config,
            self._model,
            self._prepared,
            device=self._device,
            precision=self._precision,
            num_processes=self._group.size,
            updates_per_epoch=self._updates_per_epoch,
        )
