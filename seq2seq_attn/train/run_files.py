"""Write the files of a training run at its start, reopen them for a resume, and mark the end."""

import logging

from seq2seq_attn.config import Config
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.model.weights import read_tensors
from seq2seq_attn.run import Run
from seq2seq_attn.train.checkpoint import TrainState, restore_training
from seq2seq_attn.train.reverse import write_reverse_run
from seq2seq_attn.train.session import check_same_data
from seq2seq_attn.train.update import Updater

log = logging.getLogger(__name__)


def write_run(
    run: Run, config: Config, prepared: PreparedCorpus, updater: Updater, *, overwrite: bool
) -> None:
    """Write the files of a new run. Only the first rank writes."""
    if not updater.group.is_first:
        return
    Run.create(run.path, overwrite=overwrite)
    run.save_config(config)
    run.save_text(prepared)
    run.save_sets(prepared)
    run.write_environment(updater.device)
    if updater.reverse is not None:
        write_reverse_run(run, config, prepared, updater.device)


def restore_run(run: Run, config: Config, prepared: PreparedCorpus, updater: Updater) -> TrainState:
    """Restore the saved state of a run, and reopen the run for training. If the training has ended
    and no limit was raised, the run is not reopened, and `end_reason` of the state is set.

    Raises:
        UserError: the corpus differs from the corpus of the run, or the state cannot be restored.
        UsageError: the length limit differs from the limit of the run.
    """
    check_same_data(run, config, prepared)
    state = restore_training(read_tensors(run.state_path), updater)
    reason = state.stop_reason(config.train)
    if state.end_reason and reason:  # the training has ended, and a limit is still reached
        if not run.is_finished():  # the process was killed between saving and `mark_finished`
            mark_finished(run, state, updater)
        log.info("%s: finished (%s); to continue, raise that limit with --set", run.path, reason)
        return state
    state.end_reason = None
    if updater.group.is_first:
        run.reopen(config)
        if updater.reverse is not None:
            run.reverse.reopen(run.reverse.config)
    return state


def mark_finished(run: Run, state: TrainState, updater: Updater) -> None:
    """Record the end of training in the run. Only the first rank writes."""
    if not updater.group.is_first:
        return
    end = {
        "reason": state.end_reason,
        "update": state.update,
        "epoch": state.epoch,
        "minutes": state.elapsed_s / 60,
    }
    run.mark_finished({**end, "best_score": state.best_score, "best_update": state.best_update})
    if updater.reverse is not None:
        run.reverse.mark_finished(end)
