from __future__ import annotations

import json
from typing import Any

import pytest

from seq2seq_attn.config import TrainConfig, ValidationConfig
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.schedules import Plateau
from seq2seq_attn.train.state import TrainState, Window
from seq2seq_attn.train.update import UpdateResult
from seq2seq_attn.train.validate import Validation


def test_round_trip_through_json() -> None:
    counters = {"num_without_better": 2, "num_bad_in_row": 1}
    state = TrainState(update=7, epoch=1, elapsed_s=0.1 + 0.2, **counters, plateau=Plateau(0.5, 1))
    state.window = Window(2, 30, 1e-17)
    assert TrainState.from_dict(json.loads(json.dumps(state.to_dict()))) == state
    state.record_validation(validation(3.25, 12.5), ValidationConfig())
    assert TrainState.from_dict(json.loads(json.dumps(state.to_dict()))) == state


@pytest.mark.parametrize("kind", ["applied", "overflow", "non_finite"])
def test_an_epoch_ends_with_its_last_micro_batch(kind: Any) -> None:
    result = UpdateResult(kind, 7, 1.0, 1.0, 1.0, {})
    state = TrainState()
    state.record_update(result, UpdateBatches([], [[0], [1], [2]], 7))
    assert (state.epoch, state.batches_done) == (0, 3)
    state.record_update(result, UpdateBatches([], [[3], [4]], 7, ends_epoch=True))
    assert (state.epoch, state.batches_done) == (1, 0)
    assert (state.update, state.num_bad, state.num_bad_in_row) == {
        "applied": (2, 0, 0),
        "overflow": (0, 0, 0),
        "non_finite": (0, 2, 2),
    }[kind]


def test_validation_is_due_once_an_epoch_or_every_so_many_updates() -> None:
    each_epoch, each_5 = ValidationConfig(), ValidationConfig(every_updates=5)
    assert not TrainState().is_validation_due(each_epoch)
    assert TrainState(update=10, epoch=1).is_validation_due(each_epoch)
    assert not TrainState(update=10, epoch=1, validated_at=10).is_validation_due(each_epoch)
    assert not TrainState(update=10, batches_done=3).is_validation_due(each_epoch)
    assert TrainState(update=10, batches_done=3).is_validation_due(each_5)
    assert not TrainState(update=11, epoch=1).is_validation_due(each_5)


def validation(perplexity: float, score: float, metric: str = "bleu", num_cut: int = 0) -> Validation:
    bleu, other = (score, {}) if metric in ("bleu", "perplexity") else (0.0, {metric: score})
    return Validation(perplexity, bleu, "signature", 24, num_cut, [], other)


def validations(metric: str, *pairs: tuple[float, float]) -> list[bool]:
    state, config = TrainState(), ValidationConfig.model_validate({"metric": metric})
    return [state.record_validation(validation(perplexity, score, metric), config) for score, perplexity in pairs]


def test_best_is_the_highest_bleu_and_perplexity_decides_a_tie() -> None:
    assert validations("bleu", (0, 9), (0, 8), (5, 10), (5, 10), (4, 1)) == [True, True, True, False, False]


def test_best_is_the_lowest_perplexity() -> None:
    assert validations("perplexity", (0, 9), (5, 9), (5, 8), (9, 8.5)) == [True, False, True, False]


def test_best_is_the_highest_exact_match_or_the_lowest_error_rate() -> None:
    assert validations("exact", (50, 9), (60, 9), (60, 8), (55, 1)) == [True, True, True, False]
    assert validations("cer", (50, 9), (60, 8), (40, 9), (40, 8.5)) == [True, False, True, True]


def test_cut_hypotheses_are_those_of_the_best_validation() -> None:
    state = TrainState()
    for bleu, num_cut in ((5.0, 9), (7.0, 2), (6.0, 8)):
        state.record_validation(validation(3.0, bleu, num_cut=num_cut), ValidationConfig())
    assert state.best_num_cut == 2


def test_an_infinite_perplexity_is_worse_than_any() -> None:
    assert validations("perplexity", (0, float("inf")), (0, 1e300)) == [True, True]


@pytest.mark.parametrize(
    ("settings", "state", "reason"),
    [
        ({"max_updates": 5}, TrainState(update=5), "train.max_updates=5 reached"),
        ({"max_epochs": 2}, TrainState(epoch=2), "train.max_epochs=2 reached"),
        ({"max_minutes": 0.5}, TrainState(elapsed_s=30.0), "train.max_minutes=0.5 reached"),
        (
            {"validation": {"patience": 3, "metric": "perplexity"}},
            TrainState(num_without_better=3),
            "train.validation.patience=3 reached: perplexity has not improved in 3 validations",
        ),
        ({"max_updates": 6, "max_minutes": 1.0}, TrainState(update=5, epoch=1, elapsed_s=59.0), None),
    ],
)
def test_training_stops_at_the_first_limit(settings: dict[str, object], state: TrainState, reason: str | None) -> None:
    assert state.stop_reason(TrainConfig.model_validate(settings)) == reason
