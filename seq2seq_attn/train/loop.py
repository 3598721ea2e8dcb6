"""The training loop: updates, with validations and saved states in between.

With several processes, every rank runs the loop and only the first rank writes. Ranks agree on the clock and on signals
before they act on them.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path

import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.length_ratios import with_length_limit
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import TRAIN_TEXT, VALID_SOURCES, PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.memory import TRAINING_PRIMITIVES, give_back_memory, keep_primitives, reuse_large_blocks
from seq2seq_attn.runtime.precision import allow_tf32, training_precision
from seq2seq_attn.runtime.threads import Watch
from seq2seq_attn.text.tokenizers.several import vector_sizes
from seq2seq_attn.train.batches import EpochBatches, UpdateBatches
from seq2seq_attn.train.checkpoint import SavedState
from seq2seq_attn.train.distributed import join_group, local_device
from seq2seq_attn.train.log import TrainLog, log_start, open_log
from seq2seq_attn.train.loss import build_objectives
from seq2seq_attn.train.pretrained import set_start_values
from seq2seq_attn.train.reverse import build_reverse, create_reverse_run
from seq2seq_attn.train.schedules import Schedules
from seq2seq_attn.train.session import FEWER_THREADS, Session, catch_signals, locked, set_num_threads
from seq2seq_attn.train.start import check_start, create_run_dir
from seq2seq_attn.train.state import TrainState
from seq2seq_attn.train.update import Updater
from seq2seq_attn.train.validate import Interrupted, Validator

log = logging.getLogger(__name__)


def train(config: Config, *, run_dir: Path | None = None, resume: bool = False, overwrite: bool = False) -> RunDir:
    """Train as configured and write a run directory. The data is prepared first if necessary. Under `torchrun`, all
    processes train one model.

    Args:
        config: all settings. To resume with a run's own, load them from its `config.yaml`.
        run_dir: the run directory; None: `runs/<date>-<name>-s<seed>`, or for `resume` the newest unfinished run.
        resume: continue exactly from the last saved state, or from the start if there is none.
        overwrite: replace an existing run.

    Raises:
        UsageError: the directory holds a run and neither `resume` nor `overwrite` was given; inconsistent settings.
        UserError: the data cannot be prepared, the state is damaged, memory runs out, too many consecutive updates are
            not finite, or another process trains in the directory.
        KeyboardInterrupt: on Ctrl-C, after saving.
        SystemExit: 143 on SIGTERM, 129 on SIGHUP, after saving.
    """
    keep_primitives(TRAINING_PRIMITIVES)
    reuse_large_blocks()
    with join_group() as group:
        path = group.broadcast(lambda: check_start(config, run_dir, resume=resume, overwrite=overwrite))
        prepared = group.first_before_others(lambda: prepare_corpus(config, show_progress=sys.stderr.isatty()))
        set_num_threads(config, prepared, path if resume else None)
        path = path or group.broadcast(lambda: create_run_dir(config))
        with catch_signals() as stop, ExitStack() as locks:
            trainer = Trainer(config, RunDir(path), prepared, Session(stop, group))
            group.broadcast(lambda: locks.enter_context(locked(path)))
            trainer.train(resume=resume, overwrite=overwrite)
    return trainer.run


class Trainer:
    """The models of a run, the state of its training, and the loop."""

    def __init__(self, config: Config, run: RunDir, prepared: PreparedCorpus, session: Session) -> None:
        self.run = run
        self._pairs = prepared.pairs("train")
        self._config = config = with_length_limit(config, self._pairs)
        self._prepared = prepared
        self._session = session
        self._group = group = session.group
        device = local_device(config.train.device)
        precision = training_precision(config.train.precision, device)
        allow_tf32(precision, device)
        torch.manual_seed(config.seed)
        model = build_model(
            config.model,
            num_source_ids=len(prepared.source_vocab),
            num_target_ids=len(prepared.target_vocab),
            vector_sizes=vector_sizes(prepared.source_tokenizer),
        ).to(device)
        objectives = build_objectives(config, model)
        needs_reverse = any(objective.needs_reverse for objective in objectives.values())
        reverse = build_reverse(config, prepared, device) if needs_reverse else None
        if not group.is_first:
            torch.manual_seed(group.rank_seed(config.seed))  # ranks share the weights but not the dropout masks
        self._updater = Updater(
            model,
            config.train,
            device=device,
            precision=precision,
            group=group,
            objectives=objectives,
            reverse=reverse,
        )
        self._validator = Validator(
            prepared,
            config,
            device=device,
            precision=precision,
            should_stop=lambda: session.stop.is_set,
            group=group,
        )
        self._watch = Watch(torch.get_num_threads() if device.type == "cpu" else 1, fix=FEWER_THREADS)
        self._schedules = Schedules(config.train, updates_per_epoch=self._epoch(0).num_updates)
        self._saved = SavedState(run, prepared, config, self._updater)
        self._state = TrainState()
        self._saved_at = 0

    def train(self, *, resume: bool = False, overwrite: bool = False) -> None:
        """Train to the end or until a signal, starting from the last saved state if there is one."""
        loaded = self._saved.load() if resume else None
        if loaded is not None:
            self._state, self._saved_at = loaded.state, loaded.state.update
            if loaded.finished and (reason := self._stop_reason()):
                if not self.run.is_finished():
                    self._mark_finished(loaded.finished)
                log.info("%s: finished (%s); to continue, raise that limit with --set", self.run.path, reason)
                return
        notes = set_start_values(self._updater, self._config, self._prepared) if loaded is None else []
        self._open_run(is_new=loaded is None, overwrite=overwrite or resume)
        self._session.start_clock(self._state.elapsed_s)
        with open_log(
            self.run,
            self._config,
            self._state,
            self._schedules,
            position=None if loaded is None else loaded.metrics_position,
            num_types=len(self._prepared.target_vocab),
            is_first=self._group.is_first,
        ) as train_log:
            start = "starts" if loaded is None else f"continues after update {self._state.update}"
            log.info("%s: training %s", self.run.path, start)
            log_start(self._config, self._updater, self._prepared, self._schedules)
            if loaded is None:
                for line in notes:
                    log.info(line)
                if self._updater.reverse is not None:
                    log.info("%s: saves the target-to-source model with each new best model", self.run.reverse.path)
                self._save(train_log)  # from here on there is something to resume
            self._loop(train_log)

    def _loop(self, train_log: TrainLog) -> None:
        """Make updates until a limit is reached. Before each, validate and save if that is due, and leave after a
        signal. At first a validation may be due that a signal interrupted in the last session."""
        state, config = self._state, self._config.train
        with closing(self._updates()) as updates:
            while True:
                if state.is_validation_due(config.validation) and self._validate(train_log):
                    self._save(train_log)
                elif state.update != self._saved_at and state.update % config.checkpoint_every_updates == 0:
                    self._save(train_log)
                self._leave_if_asked(train_log)
                if self._stop_reason() is not None:
                    break
                began_at = time.monotonic()
                self._update(next(updates), train_log, began_at=began_at)
                self._session.give_back_memory()
                self._watch.check()
        if state.validated_at != state.update and not self._validate(train_log):
            self._leave_if_asked(train_log)
        finished = self._stop_reason()
        train_log.ended(state, finished)
        self._save(train_log, finished=finished)
        self._mark_finished(finished)

    def _updates(self) -> Generator[UpdateBatches, None, None]:
        """The batches of each update from the current state on, epoch after epoch."""
        while True:
            yield from self._epoch(self._state.epoch).updates(self._state.batches_done)

    def _epoch(self, epoch: int) -> EpochBatches:
        return EpochBatches(
            self._pairs,
            self._config.train.batch,
            seed=self._config.seed,
            epoch=epoch,
            group=self._group,
            prepare=self._updater.prepare,
            with_surfaces=self._updater.model.output.copies_source,
        )

    def _update(self, batches: UpdateBatches, train_log: TrainLog, *, began_at: float) -> None:
        """Make an update, which is skipped if it is not finite, and record it."""
        state = self._state
        epoch = state.epoch
        rate = self._schedules.learning_rate(state.update, plateau_factor=state.plateau.factor)
        ratio = self._schedules.teacher_forcing_ratio(state.update)
        result = self._updater.train_step(
            batches,
            update=state.update,
            learning_rate=rate,
            teacher_forcing_ratio=ratio,
            objective_weights=self._schedules.objective_weights(state.update),
        )
        state.record_update(result, batches)
        state.elapsed_s = self._session.elapsed_s
        state.window.seconds += time.monotonic() - began_at
        if result.kind == "applied":
            train_log.applied(state, epoch, learning_rate=rate, teacher_forcing_ratio=ratio)
        elif result.kind == "non_finite":
            what = train_log.skipped(state, epoch, result, [index for rows in batches.indices for index in rows])
            if state.num_bad_in_row >= self._config.train.max_bad_updates:
                raise self._too_many_skipped(what)

    def _too_many_skipped(self, what: str) -> UserError:
        return UserError(
            f"{self._state.num_bad_in_row} updates in a row skipped: loss or gradient not finite; the last:"
            f" {what}. {self.run.last_dir} holds the last good state (update {self._saved_at}): resume it with"
            f" --set train.optimizer.learning_rate={self._config.train.optimizer.learning_rate / 2:g}"
            " or --precision fp32"
        )

    def _validate(self, train_log: TrainLog) -> bool:
        """Validate, and save the model if it is the best. False if a signal interrupted it, with nothing recorded."""
        state, config = self._state, self._config.train
        began_at = time.monotonic()
        give_back_memory()  # updates and translation use blocks of different sizes
        average = self._updater.average
        with average.swapped_in() if average else nullcontext():
            try:
                validation = self._validator.validate(self._updater.model)
            except Interrupted:
                return False
            is_best = state.record_validation(validation, config.validation)
            if is_best and self._group.is_first:
                self._save_best(validation.scores)
        state.plateau.record(is_best, config.schedule)
        give_back_memory()
        state.elapsed_s = self._session.elapsed_s
        train_log.validated(state, validation, is_best=is_best, seconds=time.monotonic() - began_at)
        return True

    def _save_best(self, scores: dict[str, float]) -> None:
        about = {"update": str(self._state.update), "epoch": str(self._state.epoch)}
        text = {TRAIN_TEXT: self._prepared.train_sha256, VALID_SOURCES: self._prepared.valid_sha256("source")}
        metadata = about | {name: str(score) for name, score in scores.items()} | text
        self.run.save_best(self._updater.model.state_dict(), metadata)
        if self._updater.reverse is not None:
            text[VALID_SOURCES] = self._prepared.valid_sha256("target")  # the reverse model's sources
            self.run.reverse.save_best(self._updater.reverse.state_dict(), about | text)

    def _save(self, train_log: TrainLog, *, finished: str | None = None) -> None:
        """Save all that a resume needs. `finished`: the reason if training has ended."""
        self._saved_at = self._state.update
        self._saved.save(self._state, finished=finished, metrics_position=train_log.position())

    def _leave_if_asked(self, train_log: TrainLog) -> None:
        """Save and leave if a signal has asked for it. All ranks call this after the same update."""
        state = self._state
        state.elapsed_s, must_stop = self._session.sync_ranks(state.elapsed_s)
        if must_stop:
            self._save(train_log)
            log.info("state of update %d saved; continue with --resume --run-dir %s", state.update, self.run.path)
            self._session.stop.leave()

    def _stop_reason(self) -> str | None:
        return self._state.stop_reason(self._config.train)

    def _open_run(self, *, is_new: bool, overwrite: bool) -> None:
        """Write the files of a new run, or prepare a run for its resume. The first rank does so for all."""
        if not self._group.is_first:
            return
        if is_new:
            self.run = RunDir.create(self.run.path, overwrite=overwrite)
            self.run.save_config(self._config)
            self.run.save_text(self._prepared)
            self.run.write_environment(sys.argv, self._updater.device)
            if self._updater.reverse is not None:
                create_reverse_run(self.run.reverse, self._config, self._prepared, self._updater.device)
        else:
            self.run.reopen(self._config)
            if self._updater.reverse is not None:
                self.run.reverse.reopen(self.run.reverse.config())

    def _mark_finished(self, reason: str | None) -> None:
        if not self._group.is_first:
            return
        state = self._state
        end = {"reason": reason, "update": state.update, "epoch": state.epoch, "minutes": state.elapsed_s / 60}
        self.run.mark_finished({**end, "best_score": state.best_score, "best_update": state.best_update})
        if self._updater.reverse is not None:
            self.run.reverse.mark_finished(end)
