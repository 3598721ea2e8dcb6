"""The training loop: epochs of updates, with validations and saved states in between.

With several processes, every rank runs the loop and only the first rank writes. Ranks agree on the clock and on signals
before they act on them.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.length_ratios import with_length_limit
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import TRAIN_TEXT, VALID_SOURCES, PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.precision import allow_tf32, training_precision
from seq2seq_attn.text.tokenizers.several import vector_sizes
from seq2seq_attn.train.announce import announce
from seq2seq_attn.train.batches import EpochBatches, UpdateBatches
from seq2seq_attn.train.distributed import Group, join_group, local_device
from seq2seq_attn.train.pretrained import set_pretrained
from seq2seq_attn.train.reporter import TrainReporter, open_reporter
from seq2seq_attn.train.reverse import build_reverse, create_reverse_run
from seq2seq_attn.train.saved_state import Loaded, SavedState
from seq2seq_attn.train.schedules import Schedules
from seq2seq_attn.train.session import MemorySettings, Session, open_session
from seq2seq_attn.train.start import check_start, create_run_dir
from seq2seq_attn.train.state import TrainState
from seq2seq_attn.train.translation_table import set_table
from seq2seq_attn.train.update import Updater
from seq2seq_attn.train.validate import Interrupted, Validator
from seq2seq_attn.train.word_vectors import set_vectors

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Parts:
    """The parts that a training run is built from. Tests pass their own."""

    join_group: Callable[[], AbstractContextManager[Group]] = join_group
    build_memory: Callable[[], MemorySettings] = MemorySettings
    build_updater: Callable[..., Updater] = Updater
    build_validator: Callable[..., Validator] = Validator


PARTS = Parts()


def train(
    config: Config,
    *,
    run_dir: Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    parts: Parts = PARTS,
) -> RunDir:
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
    memory = parts.build_memory()
    memory.prepare()
    with parts.join_group() as group:
        path = group.broadcast(lambda: check_start(config, run_dir, resume=resume, overwrite=overwrite))
        prepared = group.first_before_others(lambda: prepare_corpus(config, show_progress=sys.stderr.isatty()))
        if config.train.num_threads:
            torch.set_num_threads(config.train.num_threads)
        path = path or group.broadcast(lambda: create_run_dir(config))
        with open_session(group, memory) as session:
            trainer = Trainer(config, RunDir(path), prepared, session, parts)
            session.lock(path)
            trainer.train(resume=resume, overwrite=overwrite)
    return trainer.run


class Trainer:
    """The model of a run, the state of its training, and the steps between updates."""

    def __init__(
        self, config: Config, run: RunDir, prepared: PreparedCorpus, session: Session, parts: Parts = PARTS
    ) -> None:
        self.run = run
        self._pairs = prepared.pairs("train")
        self._config = config = with_length_limit(config, self._pairs)
        self._prepared = prepared
        self._session = session
        self._group = group = session.group
        self._device = device = local_device(config.train.device)
        self._precision = precision = training_precision(config.train.precision, device)
        allow_tf32(precision, device)
        torch.manual_seed(config.seed)
        self._model = build_model(
            config.model,
            num_source_ids=len(prepared.source_vocab),
            num_target_ids=len(prepared.target_vocab),
            vector_sizes=vector_sizes(prepared.source_tokenizer),
        ).to(device)
        reverse = build_reverse(config, prepared)
        self._reverse = None if reverse is None else reverse.to(device)
        if not group.is_first:
            torch.manual_seed(group.rank_seed(config.seed))  # ranks share the weights but not the dropout masks
        self._updater = parts.build_updater(
            self._model, config.train, device=device, precision=precision, group=group, reverse=self._reverse
        )
        self._validator = parts.build_validator(
            prepared,
            config,
            device=device,
            precision=precision,
            should_stop=lambda: session.is_asked_to_stop,
            group=group,
        )
        self._updates_per_epoch = self._epoch(0).num_updates
        self._schedules = Schedules(config.train, updates_per_epoch=self._updates_per_epoch)
        self._saved = SavedState(run, prepared, config, self._updater, device=device, precision=precision, group=group)
        self._state = TrainState()
        self._saved_at = 0
        self._finished: str | None = None

    def train(self, *, resume: bool = False, overwrite: bool = False) -> None:
        """Train to the end or until a signal, starting from the last saved state if there is one."""
        loaded = self._saved.load() if resume else None
        if loaded is not None:
            self._state, self._finished, self._saved_at = loaded.state, loaded.finished, loaded.state.update
        if self._finished and self._stop_reason():
            if self._group.is_first and not self.run.is_finished():
                self._mark_finished()
            log.info("%s: finished (%s); to continue, raise that limit with --set", self.run.path, self._stop_reason())
            return
        self._finished = None
        notes: list[str] = []
        if loaded is None:
            notes = self._set_start()
            if self._reverse is not None:
                notes.append(f"{self.run.reverse.path}: saves the target-to-source model with each new best model")
        if self._group.is_first:
            self._open_run(is_new=loaded is None, overwrite=overwrite or resume)
        self._session.start_clock(self._state.elapsed_s)
        with self._open_reporter(loaded) as reporter:
            self._announce(is_new=loaded is None)
            for line in notes:
                log.info(line)
            if loaded is None:
                self._save(reporter)  # from here on there is something to resume
            self._loop(reporter)

    def _set_start(self) -> list[str]:
        """Set what is not initialized at random: the weights of another run, word vectors, a translation table. Returns
        lines for the log. The other run's weights hold its word vectors, as training changed them, and its table."""
        if notes := set_pretrained(self._updater, self._config, self._prepared):
            return notes
        notes = set_vectors(self._updater, self._config.model, self._prepared)
        return notes + set_table(self._model.output, self._pairs)

    def _loop(self, reporter: TrainReporter) -> None:
        self._after_update(reporter)  # a validation may have been interrupted
        while self._stop_reason() is None:
            epoch = self._epoch(self._state.epoch)
            with closing(epoch.updates(self._state.batches_done)) as updates:
                began_at = time.monotonic()
                for batches in updates:
                    self._update(batches, reporter, num_batches_of_epoch=len(epoch), began_at=began_at)
                    self._after_update(reporter)
                    if self._stop_reason() is not None:
                        break
                    began_at = time.monotonic()
        if self._state.validated_at != self._state.update and not self._validate(reporter):
            self._after_update(reporter)
        self._finished = self._stop_reason()
        reporter.ended(self._state, self._finished, self._schedules)
        self._save(reporter)
        if self._group.is_first:
            self._mark_finished()

    def _update(
        self, batches: UpdateBatches, reporter: TrainReporter, *, num_batches_of_epoch: int, began_at: float
    ) -> None:
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
        state.take_batches(len(batches.indices), num_batches_of_epoch=num_batches_of_epoch)
        state.elapsed_s = self._session.elapsed_s
        state.window.seconds += time.monotonic() - began_at
        if result.kind == "applied":
            state.take_update(result.num_tokens, result.loss_sum, result.nll_sum, result.gradient_norm, result.terms)
            reporter.applied(state, epoch, learning_rate=rate, teacher_forcing_ratio=ratio)
        elif result.kind == "non_finite":
            state.num_bad += 1
            state.num_bad_in_row += 1
            indices = [index for of_batch in batches.indices for index in of_batch]
            what = reporter.skipped(state, epoch, result, indices)
            if state.num_bad_in_row >= self._config.train.max_bad_updates:
                raise self._too_many_skipped(what)

    def _after_update(self, reporter: TrainReporter) -> None:
        """Validate and save when due; exit on a signal."""
        state = self._state
        self._session.memory.after_update()
        is_due = state.is_validation_due(self._config.train.validation)
        if is_due and self._validate(reporter):
            self._save(reporter)
        elif state.update != self._saved_at and state.update % self._config.train.checkpoint_every_updates == 0:
            self._save(reporter)
        state.elapsed_s, must_stop = self._session.agree(state.elapsed_s)
        if must_stop:
            self._save(reporter)
            log.info("state of update %d saved; continue with --resume --run-dir %s", state.update, self.run.path)
            self._session.leave()

    def _validate(self, reporter: TrainReporter) -> bool:
        """Validate, and save the model if it is the best. False if a signal interrupted it, with nothing recorded."""
        state, settings = self._state, self._config.train.validation
        began_at = time.monotonic()
        self._session.memory.around_validation()
        average = self._updater.average
        with average.swapped_in() if average else nullcontext():
            try:
                validation = self._validator.validate(self._model)
            except Interrupted:
                return False
            is_best = state.take_validation(validation.scores, num_cut=validation.num_cut, config=settings)
            if is_best and self._group.is_first:
                about = {"update": str(state.update), "epoch": str(state.epoch)}
                scores = {key: str(value) for key, value in validation.scores.items()}
                of_data = {TRAIN_TEXT: self._prepared.train_sha256}
                of_data[VALID_SOURCES] = self._prepared.valid_sha256("source")
                self.run.save_best(self._model.state_dict(), about | scores | of_data)
                if self._reverse is not None:
                    of_data[VALID_SOURCES] = self._prepared.valid_sha256("target")  # the reverse model's sources
                    self.run.reverse.save_best(self._reverse.state_dict(), about | of_data)
        state.plateau.record(is_best, self._config.train.schedule)
        self._session.memory.around_validation()
        state.elapsed_s = self._session.elapsed_s
        reporter.validated(state, validation, is_best=is_best, seconds=time.monotonic() - began_at)
        return True

    def _save(self, reporter: TrainReporter) -> None:
        self._saved_at = self._state.update
        self._saved.save(self._state, finished=self._finished, metrics_position=reporter.position())

    def _open_run(self, *, is_new: bool, overwrite: bool) -> None:
        if is_new:
            self.run = RunDir.create(self.run.path, overwrite=overwrite)
            self.run.save_config(self._config)
            self.run.save_text(self._prepared)
            self.run.write_environment(sys.argv, self._device)
            if self._reverse is not None:
                create_reverse_run(self.run.reverse, self._config, self._prepared, self._device)
        else:
            self.run.reopen(self._config)
            if self._reverse is not None:
                self.run.reverse.reopen(self.run.reverse.config())

    def _open_reporter(self, loaded: Loaded | None) -> AbstractContextManager[TrainReporter]:
        return open_reporter(
            self.run,
            self._config,
            self._state,
            position=None if loaded is None else loaded.metrics_position,
            total_updates=self._schedules.total_updates,
            num_types=len(self._prepared.target_vocab),
            is_first=self._group.is_first,
        )

    def _announce(self, *, is_new: bool) -> None:
        log.info(
            "%s: training %s", self.run.path, "starts" if is_new else f"continues after update {self._state.update}"
        )
        announce(
            self._config,
            self._model,
            self._prepared,
            device=self._device,
            precision=self._precision,
            num_processes=self._group.size,
            updates_per_epoch=self._updates_per_epoch,
        )

    def _mark_finished(self) -> None:
        state = self._state
        best = {"best_score": state.best_score, "best_update": state.best_update}
        stands_at = {"update": state.update, "epoch": state.epoch, "minutes": state.elapsed_s / 60}
        self.run.mark_finished({"reason": self._finished, **stands_at, **best})
        if self._reverse is not None:
            self.run.reverse.mark_finished({"reason": self._finished, **stands_at})

    def _too_many_skipped(self, what: str) -> UserError:
        return UserError(
            f"{self._state.num_bad_in_row} updates in a row skipped: loss or gradient not finite; the last:"
            f" {what}. {self.run.last_dir} holds the last good state (update {self._saved_at}): resume it with"
            f" --set train.optimizer.learning_rate={self._config.train.optimizer.learning_rate / 2:g}"
            " or --precision fp32"
        )

    def _epoch(self, epoch: int) -> EpochBatches:
        config = self._config
        return EpochBatches(
            self._pairs,
            config.train.batch,
            seed=config.seed,
            epoch=epoch,
            group=self._group,
            prepare=self._updater.prepare,
        )

    def _stop_reason(self) -> str | None:
        return self._state.stop_reason(self._config.train)
