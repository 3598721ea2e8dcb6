"""The saved state: counters, tensors, generators, which model is the best, and when training
validates and stops."""

import pytest
import torch

from seq2seq_attn.config import TrainConfig
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.weights import Saved
from seq2seq_attn.train import checkpoint
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.checkpoint import TrainState
from seq2seq_attn.train.update import Updater, UpdateResult
from seq2seq_attn.train.validate import Validation
from tests.toy_run import toy_config

CPU = torch.device("cpu")


def updater(num_ids=9, *, tie="none", decay=0.0):
    model = toy_config().model.model_copy(
        update={"tie_embeddings": tie, "readout_size": 12, "embedding_size": 12}
    )
    config = TrainConfig.model_validate({"optimizer": {"average_decay": decay}})
    built = build_model(model, num_source_ids=num_ids, num_target_ids=num_ids)
    return Updater(built, config, device=CPU, precision="fp32")


def settings(**changes):
    return TrainConfig.model_validate(changes)


def validation(perplexity, score, metric="bleu", num_cut=0):
    return Validation(
        {"bleu": 0.0, metric: score, "perplexity": perplexity}, "signature", 24, num_cut, []
    )


def test_tied_parameters_are_saved_once():
    tied = checkpoint.training_tensors(updater(tie="target"))
    apart = checkpoint.training_tensors(updater(tie="none"))
    assert apart.keys() - tied.keys() == {"model/output.projection.weight"}


SESSION = {"num_threads": 1, "precision": "fp32", "num_processes": 1}


@pytest.mark.parametrize(
    ("num_ids", "decay", "values"),
    [(9, 0.0, {}), (9, 0.0, SESSION), (11, 0.0, SESSION), (9, 0.5, SESSION)],
)
def test_a_state_of_another_model_or_version_is_refused_in_one_line(num_ids, decay, values):
    tensors = checkpoint.training_tensors(updater(num_ids))
    with pytest.raises(UserError, match=r"^this version cannot resume .*$"):
        checkpoint.restore_training(Saved(tensors, values, ""), updater(decay=decay))


@pytest.mark.parametrize(
    ("kind", "counted"),
    [("applied", (2, 0, 0)), ("overflow", (0, 0, 0)), ("non_finite", (0, 2, 2))],
)
def test_an_epoch_ends_with_its_last_micro_batch(kind, counted):
    result = UpdateResult(kind, 7, 1.0, 1.0, 1.0, {})
    state = TrainState()
    state.record_update(result, UpdateBatches([], [[0], [1], [2]], 7))
    assert (state.epoch, state.batches_done) == (0, 3)
    state.record_update(result, UpdateBatches([], [[3], [4]], 7, ends_epoch=True))
    assert (state.epoch, state.batches_done) == (1, 0)
    assert (state.update, state.num_bad, state.num_bad_in_row) == counted


@pytest.mark.parametrize(
    ("state", "each_epoch", "every_5_updates"),
    [
        (TrainState(), False, False),
        (TrainState(update=10, epoch=1), True, True),
        (TrainState(update=10, epoch=1, validated_at=10), False, False),
        (TrainState(update=10, batches_done=3), False, True),
        (TrainState(update=11, epoch=1), True, False),
    ],
)
def test_validation_is_due_once_an_epoch_or_every_so_many_updates(
    state, each_epoch, every_5_updates
):
    assert state.is_validation_due(settings()) == each_epoch
    assert state.is_validation_due(settings(validation={"every_updates": 5})) == every_5_updates


@pytest.mark.parametrize(
    ("metric", "validations", "is_best"),
    [
        ("bleu", [(0, 9), (0, 8), (5, 10), (5, 10), (4, 1)], [True, True, True, False, False]),
        ("perplexity", [(0, 9), (5, 9), (5, 8), (9, 8.5)], [True, False, True, False]),
        ("perplexity", [(0, float("inf")), (0, 1e300)], [True, True]),
        ("exact", [(50, 9), (60, 9), (60, 8), (55, 1)], [True, True, True, False]),
        ("cer", [(50, 9), (60, 8), (40, 9), (40, 8.5)], [True, False, True, True]),
    ],
)
def test_best_is_by_the_metric_and_perplexity_decides_a_tie(metric, validations, is_best):
    state = TrainState()
    config = settings(validation={"metric": metric})
    best = 0
    for number, (score, perplexity) in enumerate(validations):
        result = validation(perplexity, score, metric, num_cut=number)
        assert state.record_validation(result, config) == is_best[number]
        best = number if is_best[number] else best
    assert state.best_num_cut == best


@pytest.mark.parametrize(
    ("metric", "score", "waited"), [("cer", 0, 2), ("exact", 100, 2), ("cer", 1, 0)]
)
def test_patience_ends_training_after_a_perfect_score(metric, score, waited):
    state = TrainState()
    for perplexity in (1.3, 1.2, 1.1):
        result = validation(perplexity, score, metric)
        assert state.record_validation(result, settings(validation={"metric": metric}))
    assert state.num_without_better == waited


@pytest.mark.parametrize(
    ("limits", "state", "reason"),
    [
        ({"max_updates": 5}, TrainState(update=5), "train.max_updates=5 reached"),
        ({"max_epochs": 2}, TrainState(epoch=2), "train.max_epochs=2 reached"),
        ({"max_minutes": 0.5}, TrainState(elapsed_s=30.0), "train.max_minutes=0.5 reached"),
        (
            {"validation": {"patience": 3}},
            TrainState(num_without_better=3),
            "train.validation.patience=3 reached",
        ),
        (
            {"max_updates": 6, "max_minutes": 1.0},
            TrainState(update=5, epoch=1, elapsed_s=59.0),
            None,
        ),
    ],
)
def test_training_stops_at_the_first_limit(limits, state, reason):
    assert (state.stop_reason(settings(**limits)) or "None").startswith(str(reason))
