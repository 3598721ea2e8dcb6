from __future__ import annotations

import json

import pytest

from seq2seq_attn.config import TrainConfig, ValidationConfig
from seq2seq_attn.train.optim import Plateau
from seq2seq_attn.train.state import TrainState, Window


def test_round_trip_through_json() -> None:
    counters = {"num_without_better": 2, "num_bad_in_row": 1}
    state = TrainState(update=7, epoch=1, elapsed_s=0.1 + 0.2, **counters, plateau=Plateau(0.5, 1))
    state.window = Window(2, 30, 1e-17)
    assert TrainState.from_dict(json.loads(json.dumps(state.to_dict()))) == state
    state.take_validation({"bleu": 12.5, "perplexity": 3.25}, num_cut=0, config=ValidationConfig())
    assert TrainState.from_dict(json.loads(json.dumps(state.to_dict()))) == state


def test_an_epoch_ends_with_its_last_micro_batch() -> None:
    state = TrainState()
    state.take_batches(3, num_batches_of_epoch=5)
    assert (state.epoch, state.batches_done) == (0, 3)
    state.take_batches(2, num_batches_of_epoch=5)
    assert (state.epoch, state.batches_done) == (1, 0)


def test_validation_is_due_once_an_epoch_or_every_so_many_updates() -> None:
    each_epoch, each_5 = ValidationConfig(), ValidationConfig(every_updates=5)
    assert not TrainState().is_validation_due(each_epoch)
    assert TrainState(update=10, epoch=1).is_validation_due(each_epoch)
    assert not TrainState(update=10, epoch=1, validated_at=10).is_validation_due(each_epoch)
    assert not TrainState(update=10, batches_done=3).is_validation_due(each_epoch)
    assert TrainState(update=10, batches_done=3).is_validation_due(each_5)
    assert not TrainState(update=11, epoch=1).is_validation_due(each_5)


def validations(metric: str, *pairs: tuple[float, float]) -> list[bool]:
    state, config = TrainState(), ValidationConfig.model_validate({"metric": metric})
    other = "bleu" if metric == "perplexity" else metric
    scores = [{other: score, "perplexity": perplexity} for score, perplexity in pairs]
    return [state.take_validation(of_one, num_cut=0, config=config) for of_one in scores]


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
        state.take_validation({"bleu": bleu, "perplexity": 3.0}, num_cut=num_cut, config=ValidationConfig())
    assert state.best_num_cut == 2
    saved = state.to_dict()
    assert TrainState.from_dict(saved).best_num_cut == 2
    del saved["best_num_cut"]  # as before cuts were counted
    assert TrainState.from_dict(saved).best_num_cut == 0


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
