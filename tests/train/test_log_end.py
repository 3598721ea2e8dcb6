"""The end of a training run in words: the score, what it is made of, and the next commands."""

import math
import shlex

import pytest

from seq2seq_attn.train.log_end import describe_fit, describe_word_order
from tests.train.runs import events, logged


@pytest.mark.parametrize(
    ("shares", "words", "sequences", "amount"),
    [
        ((0.38, 0.1, 0.04, 0.015), "38", "2", "hardly any"),  # about 5.8 BLEU
        ((0.5, 0.2, 0.1, 0.08), "50", "8", "little"),
        ((0.7, 0.5, 0.4, 0.3), "70", "30", "part"),
        ((1.0, 1.0, 1.0, 0.99), "100", "99", "most"),
        ((1.0, 1.0, 1.0, 0.999), "100", "100", "all"),
        ((0.0, 0.0, 0.0, 0.0), "0", "0", "hardly any"),
    ],
)
def test_describe_word_order(shares, words, sequences, amount):
    text = describe_word_order(shares)
    assert f" {words} are in the reference" in text
    assert f"four words, {sequences}: {amount} of the word order" in text


def test_the_end_names_scores_and_commands_of_the_run(train_toy):
    run = train_toy("train.validation.every_updates=8")
    text = logged(run)
    first, *_, last = events(run, "validation")
    assert f"{first['bleu']:.1f} at the first validation, {last['bleu']:.1f} at the last" in text
    assert "in the reference" in text
    assert "not translated, has BLEU 0.0" in text
    sentence = shlex.quote(last["samples"][0]["source"])
    assert f"seq2seq translate --run {run.path} {sentence}\n" in text
    assert f"seq2seq evaluate {run.path}\n" in text


@pytest.mark.parametrize(
    ("settings", "has_sentence"),
    [(["data.test={}"], True), (["data.test={}", "train.validation.num_samples=0"], False)],
)
def test_without_a_test_set_the_validation_set_is_evaluated(train_toy, settings, has_sentence):
    run = train_toy(*settings)
    assert f"seq2seq evaluate {run.path} --split valid\n" in logged(run)
    assert ("seq2seq translate" in logged(run)) == has_sentence


@pytest.mark.parametrize(
    ("scores", "metric", "loss", "expected"),
    [
        ((10.0, 20.0, 30.0, 40.0), "bleu", 1.0, "max_updates=800"),
        ((10.0, 30.0, 40.0, 40.1), "bleu", 1.0, None),
        ((10.0, 30.0, 40.0, 40.1), "bleu", 0.2, "model.dropout"),
        ((0.0, 0.0, 0.0, 0.0), "exact", 1.0, "max_updates=800"),
        ((1.0, 2.0, 3.0, 8.9), "bleu", 1.0, "usable"),
        ((51.0,), "cer", 1.0, "max_updates=200"),
        ((49.0,), "cer", 1.0, None),
        ((99.0, 100.0, 100.0, 100.0), "exact", 0.0, None),
        ((1.0, 0.0, 0.0, 0.0), "wer", 0.0, None),
    ],
)
def test_the_fit_of_a_run(scores, metric, loss, expected):
    """The score still rises, or the training text is memorized, or the model is unusable, or
    none of these."""
    validations = []
    for number, score in enumerate(scores, 1):
        line = {"update": 100 * number, metric: score, "perplexity": math.e, "is_best": True}
        validations.append(line)
    longer = f"max_updates={2 * 100 * len(scores)}"
    text = describe_fit([3.0, loss], validations, scores[-1], metric, longer)
    assert text is None if expected is None else expected in text


def test_error_rates_are_shown_beside_exact_matches(train_toy):
    text = logged(train_toy("train.validation.metric=wer"))
    assert "validation WER" in text
    assert "validation exact match" in text
    assert "validation BLEU" not in text


@pytest.mark.parametrize(
    ("limit", "longer"),
    [
        ("train.max_updates=2", "train.max_updates=4"),
        ("train.max_minutes=0.00001", "train.max_minutes=2e-05"),
        (
            "train.max_updates=900 train.max_epochs=null train.validation.every_updates=1 "
            "train.validation.patience=1 train.optimizer.learning_rate=1e-9",
            "train.max_updates=900 --set train.validation.patience=null",
        ),
        (
            "train.max_updates=2 train.max_minutes=60",
            "train.max_minutes=120 --set train.max_updates=4",
        ),
    ],
)
def test_a_run_that_is_of_no_use_says_how_to_train_longer_before_the_next_commands(
    train_toy, limit, longer
):
    text = logged(train_toy(*limit.split()))
    assert 0 < text.index(f"--set {longer}") < text.index("seq2seq translate")
