"""The training loop: make updates, validate, and save the state.

With several processes, every rank runs the loop and only the first rank writes. Ranks exchange the
elapsed time and signals before they act on them.
"""

import logging
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from seq2seq_attn.config import Config
from seq2seq_attn.data.audit import with_length_limit
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.run import Run
from seq2seq_attn.runtime.memory import (
    give_back_memory,
    keep_few_primitives,
    reuse_large_blocks,
)
from seq2seq_attn.runtime.signals import StopRequest, record_signals
from seq2seq_attn.train.batches import UpdateBatches, epoch_updates, plan_epoch
from seq2seq_attn.train.checkpoint import TrainState, save_training
from seq2seq_attn.train.distributed import join_group
from seq2seq_attn.train.log import TrainLog
from seq2seq_attn.train.log_end import log_end
from seq2seq_attn.train.log_start import log_start
from seq2seq_attn.train.pretrained import set_start_values
from seq2seq_attn.train.run_files import mark_finished, restore_run, write_run
from seq2seq_attn.train.schedules import Schedules
from seq2seq_attn.train.session import (
    OnValidation,
    check_start,
    create_run_dir,
    locked,
    set_num_threads,
)
from seq2seq_attn.train.update import Updater, UpdateResult, build_updater
from seq2seq_attn.train.validate import Validator

GIVE_BACK_EVERY_S = 15.0
"""Minimum number of seconds between two calls of `give_back_memory`. The heap fragments during
hours of training: small allocations that stay (mostly compiled primitives) lie behind large blocks.
The calls are rare, because memory that was returned to the system must be allocated and cleared
again."""

log = logging.getLogger(__name__)


def train(
    config: Config,
    *,
    run_dir: Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    on_validation: OnValidation | None = None,
) -> Run:
    """Train as configured and write a run directory. The data is prepared first if necessary. Under
    `torchrun`, all processes train one model.

    Args:
        config: all settings. To resume a run with its settings, load its `config.yaml`.
        run_dir: None for `runs/<date>-<name>-s<seed>`, or with `resume` the newest unfinished run.
        resume: continue exactly from the last saved state, or from the start if there is none.
        overwrite: replace an existing run.
        on_validation: called on every rank after each validation, once the state is saved.

    Raises:
        UsageError: settings are inconsistent, or a run would be replaced without `overwrite`.
        UserError: the data cannot be prepared, the state is damaged, memory runs out, too many
            consecutive updates are not finite, or another process trains in the directory.
        KeyboardInterrupt: Ctrl-C was pressed; the state has been saved.
        SystemExit: SIGTERM (exit code 143) or SIGHUP (129) arrived; the state has been saved.
    """
    reuse_large_blocks()
    keep_few_primitives()
    with join_group() as group, ExitStack() as opened:
        # The first rank prepares the corpus and writes the run, and then the other ranks read them.
        with group.in_turn():
            path = check_start(config, run_dir, resume=resume, overwrite=overwrite)
            resumed = path if resume else None
            prepared = prepare_corpus(config, own_run=resumed)
            set_num_threads(config, prepared, resumed)
        config = with_length_limit(config, prepared.pairs("train"))
        stop = opened.enter_context(record_signals())
        updater = build_updater(config, prepared, group)
        with group.in_turn():
            validator = Validator(prepared, config, updater, stop)
        run = Run(path or create_run_dir(config, group))
        with group.in_turn():
            if group.is_first:
                opened.enter_context(locked(run.path))
            state, notes = _begin(
                run, config, prepared, updater, resume=resume, overwrite=overwrite
            )
        if not state.end_reason:
            trainer = Trainer(run, config, prepared, updater, validator, state, stop, on_validation)
            trainer.train(notes)
    return run


def _begin(
    run: Run,
    config: Config,
    prepared: PreparedCorpus,
    updater: Updater,
    *,
    resume: bool,
    overwrite: bool,
) -> tuple[TrainState, list[str]]:
    """Restore the state of a run, or write the files of a new run. Return the state, and lines for
    the log about the start values of a new run."""
    if resume and run.state_path.exists():
        return restore_run(run, config, prepared, updater), []
    notes = set_start_values(updater, config, prepared)
    # A resumed run without a saved state starts over, so its files are replaced.
    write_run(run, config, prepared, updater, overwrite=overwrite or resume)
    return TrainState(), notes


@dataclass
class Trainer:
    """A training run in progress, on one rank."""

    run: Run
    config: Config
    prepared: PreparedCorpus
    updater: Updater
    validator: Validator
    state: TrainState
    stop: StopRequest
    on_validation: OnValidation | None = None
    is_stopped: bool = False
    """whether `on_validation` has asked to stop"""

    def __post_init__(self) -> None:
        now = time.monotonic()
        self.gave_back_at = now
        # `elapsed_s` includes earlier sessions, so a resumed run began in the past.
        self.began_at = now - self.state.elapsed_s
        first_epoch = plan_epoch(
            self.prepared.pairs("train"), self.config.train.batch, seed=self.config.seed, epoch=0
        )
        self.schedules = Schedules(self.config.train, updates_per_epoch=len(first_epoch))
        self.log = TrainLog(
            self.run,
            self.config.train,
            self.schedules,
            self.state,
            num_types=len(self.prepared.target_vocab),
            writes=self.updater.group.is_first,
        )

    def train(self, notes: Sequence[str]) -> None:
        """Make updates, epoch after epoch, until a limit is reached.

        Before each update, validate and save if the state is due for a validation or a save, and
        leave after a signal. These steps also precede the first update: a new run is saved, and a
        validation that a signal interrupted in the last session is repeated.

        `notes` are lines about the start values, for the log.
        """
        state = self.state
        limits = self.config.train
        with self.log, closing(self._updates()) as updates:
            log_start(self.run, self.config, self.prepared, self.updater, state, self.schedules)
            for note in notes:
                log.info(note)
            while True:
                if state.is_validation_due(limits):
                    self._validate()
                if state.is_save_due(limits):
                    self._save()
                self._leave_after_signal()
                if self.is_stopped or state.stop_reason(limits):
                    break
                self._update(updates)
            # The limit may be reached between two validations: validate the final weights too.
            if state.validated_at != state.update:
                self._validate()
                self._leave_after_signal()
            state.end_reason = state.stop_reason(limits) or "on_validation returned True"
            self.log.ended(state)
            self._save()
            mark_finished(self.run, state, self.updater)
            if self.updater.group.is_first:
                log_end(self.run, self.config, self.validator.copied_bleu())

    def _updates(self) -> Generator[UpdateBatches, None, None]:
        """Yield the batches of each update, beginning after the updates that the state has
        recorded, epoch after epoch.

        The caller must record each update in the state before asking for the next batches: at the
        end of an epoch, this generator reads the number of the next epoch from the state.
        """
        pairs = self.prepared.pairs("train")
        batch = self.config.train.batch
        while True:
            plan = plan_epoch(pairs, batch, seed=self.config.seed, epoch=self.state.epoch)
            # A resumed session may begin in the middle of an epoch.
            updates_done = self.state.batches_done // batch.accumulate
            yield from epoch_updates(
                pairs,
                plan,
                updates_done,
                group=self.updater.group,
                prepare=self.updater.prepare,
                with_extended=self.updater.model.output.copies_source,
            )

    def _update(self, updates: Iterator[UpdateBatches]) -> None:
        """Make and record an update.

        An update whose loss or gradient is not finite is skipped and logged. An update whose fp16
        gradients overflowed (`overflow`) is skipped without a log line, because such updates are
        normal while the scaler searches for its scale.
        """
        state = self.state
        epoch = state.epoch
        update_began_at = time.monotonic()
        batches = next(updates)
        settings = self.schedules.settings(state.update)
        result = self.updater.apply_update(batches, update=state.update, **settings)
        state.record_update(result, batches)
        state.elapsed_s = time.monotonic() - self.began_at
        state.window.seconds += time.monotonic() - update_began_at
        if result.outcome == "applied":
            self.log.applied(state, epoch, settings)
        elif result.outcome == "non_finite":
            self._report_non_finite(batches, result, epoch)
        self._give_back_memory()

    def _report_non_finite(self, batches: UpdateBatches, result: UpdateResult, epoch: int) -> None:
        """Log an update that was skipped because it is not finite. Raise UserError if too many
        consecutive updates are not finite, or if the weights are not finite."""
        state = self.state
        config = self.config.train
        indices = [index for micro_batch in batches.indices for index in micro_batch]
        reason = self.log.skipped(state, epoch, result, indices)
        is_hopeless = not self.updater.has_finite_weights()
        if state.num_bad_in_row >= config.max_bad_updates or is_hopeless:
            raise UserError(
                f"{state.num_bad_in_row} updates in a row: loss, gradient or weights not finite; "
                f"the last: {reason}. {self.run.last_dir} holds the last good state (update "
                f"{state.saved_at}): resume it with --set "
                f"train.optimizer.learning_rate={config.optimizer.learning_rate / 2:g} or "
                "--precision fp32"
            )

    def _validate(self) -> None:
        """Validate the model, save the model if this validation is the best, and save the state. If
        a signal interrupts the validation, record and save nothing."""
        state = self.state
        updater = self.updater
        validation_began_at = time.monotonic()
        give_back_memory()  # updates and translation use blocks of different sizes
        with updater.use_average():
            validation = self.validator.validate()
            if validation is None:
                return
            is_best = state.record_validation(validation, self.config.train)
            if is_best and updater.group.is_first:
                about = {"update": state.update, "epoch": state.epoch}
                updater.save_best(self.run, about, validation.scores)
        give_back_memory()
        state.elapsed_s = time.monotonic() - self.began_at
        seconds = time.monotonic() - validation_began_at
        self.log.validated(state, validation, is_best=is_best, seconds=seconds)
        self._save()
        if self.on_validation is not None:
            self.is_stopped = self.on_validation(state.update, validation.scores) is True

    def _save(self) -> None:
        """Save the state that a resume needs."""
        self.state.saved_at = self.state.update
        self.state.metrics_position = self.log.position()
        save_training(self.run, self.updater, self.state)

    def _leave_after_signal(self) -> None:
        """Set the elapsed time to the maximum over all ranks, and exchange signals. If a signal has
        arrived on any rank, or if `torchrun` has ended, save the state and raise the exception of
        the signal (`StopRequest.leave`). All ranks call this method after the same update."""
        state = self.state
        group = self.updater.group
        stop = self.stop
        if group.is_orphaned and not stop.is_set:
            log.error("torchrun (process %d) is gone: saving, then exiting", group.launcher)
            stop.signal_number = signal.SIGTERM
        # Without a signal, a rank sends 0. If ranks have received different signals, all ranks
        # leave by the largest number: any rule serves by which all ranks choose the same signal.
        own_values = [state.elapsed_s, stop.signal_number or 0]
        state.elapsed_s, signal_number = group.elementwise_max(own_values)
        if signal_number:
            stop.signal_number = int(signal_number)
            self._save()
            text = "state of update %d saved; continue with --resume --run-dir %s"
            log.info(text, state.update, self.run.path)
            stop.leave()

    def _give_back_memory(self) -> None:
        """Return free memory to the system, at most once per `GIVE_BACK_EVERY_S` seconds."""
        if time.monotonic() - self.gave_back_at >= GIVE_BACK_EVERY_S:
            give_back_memory()
            self.gave_back_at = time.monotonic()
