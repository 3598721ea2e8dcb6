"""The training loop: updates, with validations and saved states in between.

With several processes, every rank runs the loop and only the first rank writes. Ranks agree on the
clock and on signals before they act on them.
"""

import logging
import random
import signal
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path

import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.audit import with_length_limit
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.weights import read_tensors
from seq2seq_attn.run import Run
from seq2seq_attn.runtime.device import training_precision, tune_float32
from seq2seq_attn.runtime.memory import give_back_memory, reuse_large_blocks
from seq2seq_attn.train.batches import UpdateBatches, epoch_updates, plan_epoch
from seq2seq_attn.train.checkpoint import TrainState, restore_training, save_training
from seq2seq_attn.train.distributed import Group, join_group, local_device
from seq2seq_attn.train.log import TrainLog, log_start
from seq2seq_attn.train.loss import build_objectives, reverse_config
from seq2seq_attn.train.pretrained import set_start_values
from seq2seq_attn.train.schedules import Schedules, UpdateSettings
from seq2seq_attn.train.session import (
    StopRequest,
    catch_signals,
    check_same_data,
    check_start,
    create_run_dir,
    locked,
    set_num_threads,
)
from seq2seq_attn.train.update import Updater, UpdateResult
from seq2seq_attn.train.validate import Validator

GIVE_BACK_EVERY_S = 15.0
"""During hours of training the heap fragments: small allocations that stay (mostly compiled
primitives) end up behind large blocks. Memory that was returned must be allocated and cleared
again, so this is not done after every update."""

log = logging.getLogger(__name__)


def train(
    config: Config, *, run_dir: Path | None = None, resume: bool = False, overwrite: bool = False
) -> Run:
    """Train as configured and write a run directory. The data is prepared first if necessary. Under
    `torchrun`, all processes train one model.

    Args:
        config: all settings. To resume with a run's own, load them from its `config.yaml`.
        run_dir: the run directory; None: `runs/<date>-<name>-s<seed>`, or for `resume` the newest
            unfinished run.
        resume: continue exactly from the last saved state, or from the start if there is none.
        overwrite: replace an existing run.

    Raises:
        UsageError: the directory holds a run and neither `resume` nor `overwrite` was given;
            inconsistent settings.
        UserError: the data cannot be prepared, the state is damaged, memory runs out, too many
            consecutive updates are not finite, or another process trains in the directory.
        KeyboardInterrupt: on Ctrl-C, after saving.
        SystemExit: 143 on SIGTERM, 129 on SIGHUP, after saving.
    """
    reuse_large_blocks()
    with join_group() as group:
        path = group.broadcast(
            lambda: check_start(config, run_dir, resume=resume, overwrite=overwrite)
        )
        own_run = path if resume else None
        prepared = group.first_before_others(
            lambda: prepare_corpus(config, own_run=own_run, show_progress=sys.stderr.isatty())
        )
        group.first_before_others(lambda: set_num_threads(config, prepared, own_run))
        config = with_length_limit(config, prepared.pairs("train"))
        with catch_signals() as stop, ExitStack() as locks:
            updater = _build_updater(config, prepared, group)
            validator = group.first_before_others(
                lambda: Validator(prepared, config, updater, should_stop=lambda: stop.is_set)
            )
            run = Run(path or group.broadcast(lambda: create_run_dir(config)))
            group.broadcast(lambda: locks.enter_context(locked(run.path)))
            if resume and group.broadcast(run.state_path.exists):
                state, notes = (
                    group.first_before_others(lambda: _restore(run, config, prepared, updater)),
                    [],
                )
            else:
                state, notes = TrainState(), set_start_values(updater, config, prepared)
                group.broadcast(
                    lambda: _write_run(
                        run, config, prepared, updater, overwrite=overwrite or resume
                    )
                )
            if not state.end_reason:
                Trainer(run, config, prepared, updater, validator, state, stop).train(notes)
    return run


def _build_updater(config: Config, prepared: PreparedCorpus, group: Group) -> Updater:
    """A new model on this rank's device, with the reverse model if an objective needs one, and
    their optimizer."""
    device = local_device(config.train.device)
    precision = training_precision(config.train.precision, device)
    tune_float32(precision, device)
    torch.manual_seed(config.seed)
    model = build_model(
        config.model,
        num_source_ids=len(prepared.source_vocab),
        num_target_ids=len(prepared.target_vocab),
        vector_sizes=prepared.source_tokenizer.vector_sizes,
    ).to(device)
    objectives, reverse = build_objectives(config, model), None
    if any(objective.needs_reverse for objective in objectives.values()):
        num_source_ids, num_target_ids = len(prepared.target_vocab), len(prepared.source_vocab)
        with torch.random.fork_rng(devices=[]):
            reverse = build_model(
                config.model, num_source_ids=num_source_ids, num_target_ids=num_target_ids
            ).to(device)
    if not group.is_first:  # ranks share the weights but not the dropout masks
        torch.manual_seed(random.Random(f"{config.seed}/rank {group.rank}").getrandbits(63))
    return Updater(
        model,
        config.train,
        device=device,
        precision=precision,
        group=group,
        objectives=objectives,
        reverse=reverse,
    )


def _write_run(
    run: Run, config: Config, prepared: PreparedCorpus, updater: Updater, *, overwrite: bool
) -> None:
    """Write the files of a new run, and of that of the reverse model."""
    Run.create(run.path, overwrite=overwrite)
    configs = [(run, config)]
    if updater.reverse is not None:
        limited = with_length_limit(
            reverse_config(config), prepared.pairs("train"), is_reverse=True
        )
        configs.append((Run.create(run.reverse.path), limited))
    for each, own_config in configs:
        each.save_config(own_config)
        each.save_text(prepared, is_reverse=each is not run)
        each.write_environment(sys.argv, updater.device)


def _restore(run: Run, config: Config, prepared: PreparedCorpus, updater: Updater) -> TrainState:
    """Restore the saved state of a run, and take the run up again, unless it has reached its
    end."""
    check_same_data(run, config, prepared)
    state = restore_training(read_tensors(run.state_path), updater)
    if state.end_reason and (reason := state.stop_reason(config.train)):
        if not run.is_finished():
            _mark_finished(run, state, updater)
        log.info("%s: finished (%s); to continue, raise that limit with --set", run.path, reason)
        return state
    state.end_reason = None
    if updater.group.is_first:
        run.reopen(config)
        if updater.reverse is not None:
            run.reverse.reopen(run.reverse.config)
    return state


def _mark_finished(run: Run, state: TrainState, updater: Updater) -> None:
    if updater.group.is_first:
        minutes = state.elapsed_s / 60
        end = {
            "reason": state.end_reason,
            "update": state.update,
            "epoch": state.epoch,
            "minutes": minutes,
        }
        run.mark_finished({**end, "best_score": state.best_score, "best_update": state.best_update})
        if updater.reverse is not None:
            run.reverse.mark_finished(end)


class Trainer:
    """A training run in progress."""

    log: TrainLog

    def __init__(
        self,
        run: Run,
        config: Config,
        prepared: PreparedCorpus,
        updater: Updater,
        validator: Validator,
        state: TrainState,
        stop: StopRequest,
    ) -> None:
        self.run, self.config, self.prepared, self.updater = run, config, prepared, updater
        self.validator, self.state, self.stop = validator, state, stop
        first_epoch = plan_epoch(
            prepared.pairs("train"), config.train.batch, seed=config.seed, epoch=0
        )
        self.schedules = Schedules(config.train, updates_per_epoch=len(first_epoch))
        self.gave_back_at = time.monotonic()
        self.began_at = self.gave_back_at - state.elapsed_s

    def train(self, notes: Sequence[str]) -> None:
        """Make updates until a limit is reached. Before each, validate and save if that is due, and
        leave after a signal. At first, a new run is saved, and a validation may be due that a
        signal interrupted in the last session. `notes`: on the start values, for the log."""
        state, config = self.state, self.config.train
        num_types, is_first = len(self.prepared.target_vocab), self.updater.group.is_first
        with (
            TrainLog(
                self.run, config, self.schedules, state, num_types=num_types, writes=is_first
            ) as self.log,
            closing(self._update_batches()) as updates,
        ):
            log_start(self.run, self.config, self.prepared, self.updater, state, self.schedules)
            for note in notes:
                log.info(note)
            while True:
                if (state.is_validation_due(config) and self._validate()) or state.is_save_due(
                    config
                ):
                    self._save()
                self._leave_if_asked()
                if state.stop_reason(config):
                    break
                began_at = time.monotonic()
                batches = next(updates)
                settings = self.schedules.settings(
                    state.update, plateau_factor=state.plateau_factor
                )
                result = self.updater.apply_update(batches, update=state.update, **settings)
                self._record(batches, settings, result, began_at)
                self._give_back_memory()
            if state.validated_at != state.update and not self._validate():
                self._leave_if_asked()
            state.end_reason = state.stop_reason(config)
            self.log.ended(state)
            self._save()
            _mark_finished(self.run, state, self.updater)

    def _update_batches(self) -> Generator[UpdateBatches, None, None]:
        """The batches of each update from the current state on, epoch after epoch."""
        pairs, batch, state = self.prepared.pairs("train"), self.config.train.batch, self.state
        while True:
            yield from epoch_updates(
                pairs,
                plan_epoch(pairs, batch, seed=self.config.seed, epoch=state.epoch),
                state.batches_done // batch.accumulate,
                group=self.updater.group,
                prepare=self.updater.prepare,
                with_extended=self.updater.model.output.copies_source,
            )

    def _record(
        self,
        batches: UpdateBatches,
        settings: UpdateSettings,
        result: UpdateResult,
        began_at: float,
    ) -> None:
        """Record an update, which was skipped if it is not finite."""
        state, epoch, config = self.state, self.state.epoch, self.config.train
        state.record_update(result, batches)
        state.elapsed_s = time.monotonic() - self.began_at
        state.window.seconds += time.monotonic() - began_at
        if result.kind == "applied":
            self.log.applied(state, epoch, settings)
        elif result.kind == "non_finite":
            what = self.log.skipped(
                state, epoch, result, [index for rows in batches.indices for index in rows]
            )
            if (
                state.num_bad_in_row >= config.max_bad_updates
                or not self.updater.has_finite_weights()
            ):
                raise UserError(
                    f"{state.num_bad_in_row} updates in a row: loss, gradient or weights not "
                    f"finite; the last: {what}. {self.run.last_dir} holds the last good state "
                    f"(update {state.saved_at}): resume it with --set "
                    f"train.optimizer.learning_rate={config.optimizer.learning_rate / 2:g} or "
                    "--precision fp32"
                )

    def _validate(self) -> bool:
        """Validate, and save the model if it is the best. False if a signal interrupted it, with
        nothing recorded."""
        state, updater, began_at = self.state, self.updater, time.monotonic()
        give_back_memory()  # updates and translation use blocks of different sizes
        with updater.average.swapped_in() if updater.average else nullcontext():
            validation = self.validator.validate(updater.model)
            if validation is None:
                return False
            is_best = state.record_validation(validation, self.config.train)
            if is_best and updater.group.is_first:
                about = {"update": state.update, "epoch": state.epoch}
                self.run.save_best(updater.model.state_dict(), about | validation.scores)
                if updater.reverse is not None:
                    self.run.reverse.save_best(updater.reverse.state_dict(), about)
        give_back_memory()
        state.elapsed_s = time.monotonic() - self.began_at
        self.log.validated(state, validation, is_best=is_best, seconds=time.monotonic() - began_at)
        return True

    def _save(self) -> None:
        """Save all that a resume needs."""
        self.state.saved_at = self.state.update
        self.state.metrics_position = self.log.position()
        save_training(self.run, self.updater, self.state)

    def _leave_if_asked(self) -> None:
        """Agree with the other ranks on the clock, and leave, after saving, if a signal has asked
        any of them to, or if `torchrun` is gone. All ranks call this after the same update."""
        state, group, stop = self.state, self.updater.group, self.stop
        if group.is_orphaned and not stop.is_set:
            log.error("torchrun (process %d) is gone: saving, then exiting", group.launcher)
            stop.signal_number = signal.SIGTERM
        state.elapsed_s, signal_number = group.elementwise_max(
            [state.elapsed_s, stop.signal_number or 0]
        )
        if signal_number:
            stop.signal_number = int(signal_number)
            self._save()
            log.info(
                "state of update %d saved; continue with --resume --run-dir %s",
                state.update,
                self.run.path,
            )
            stop.leave()

    def _give_back_memory(self) -> None:
        """Return free memory to the system, but not after every update."""
        if time.monotonic() - self.gave_back_at >= GIVE_BACK_EVERY_S:
            give_back_memory()
            self.gave_back_at = time.monotonic()
