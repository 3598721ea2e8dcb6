"""Alignment scores against hand-made cases and a plain reference."""

import numpy as np
import pytest

from seq2seq_attn.metrics.attention import score_attention, words_from_tokens


def from_links(links, shape=(7, 5)):
    """Weights whose largest are those of the links, at most one per target position."""
    weights_TS = np.zeros(shape)
    for source, target in links:
        weights_TS[target] = 0.1
        weights_TS[target, source] = 0.6
    return weights_TS


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        # Och and Ney with P = S: A = 3 links, S = 2, 1 in both: 1 - (1 + 1) / (3 + 2)
        ([[(0, 0), (1, 1), (3, 3)]], [[(0, 0), (2, 2)]], (0.6, 1 / 3, 1 / 2)),
        ([[]], [[(0, 0)]], (1.0, 0.0, 0.0)),
        ([[]], [[]], (0.0, 0.0, 0.0)),
    ],
)
def test_rates_by_hand(predicted, gold, expected):
    score = score_attention([*map(from_links, predicted)], gold)
    assert (score.error_rate, score.precision, score.recall) == pytest.approx(expected)


def test_mass_is_the_mean_weight_on_linked_positions():
    weights = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
    assert score_attention([weights], [[(0, 0), (1, 1), (2, 1)]]).mass == pytest.approx((0.7 + 0.7) / 2)
    assert np.isnan(score_attention([np.zeros((0, 4))], [[]]).mass)
    with pytest.raises(ValueError, match="argument"):
        score_attention([weights], [[], []])


@pytest.mark.parametrize("shift", [1, -1])
def test_attention_that_is_off_by_one_scores_only_when_shifted(shift):
    """Words without a shifted step are not held against it."""
    gold = [(2, 0), (0, 1), (1, 2)]
    weights = np.full((3, 3), 0.05)
    weights[0 if shift > 0 else 2] = [0.1, 0.8, 0.1]
    for source, target in gold:
        if 0 <= target + shift < 3:  # it looks at the right word one step too late, or too early
            weights[target + shift, source] = 0.9
    shifted, plain = score_attention([weights], [gold], shift=shift), score_attention([weights], [gold])
    assert (shifted.error_rate, shifted.precision, shifted.recall) == (0.0, 1.0, 1.0)
    assert shifted.mass == pytest.approx(0.9)
    assert plain.recall < 0.5
    assert plain.mass < 0.4


AB, CD, SPACED = ["a", "b"], ["c", "d"], ["▁", "a", "▁", "b", "▁"]


@pytest.mark.parametrize(
    ("weights", "sides", "expected"),
    [
        pytest.param(
            [[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.1, 0.3], [0.2, 0.2, 0.5, 0.1]],
            (["▁Wi", "ese", "."], ["▁mea", "dow"], ["Wiese", "."], ["Meadow"]),
            [[0.45, 0.2]],
            id="subwords with <eos>",
        ),
        pytest.param(
            [[0.1, 0.2, 0.3, 0.1, 0.3], [0.4, 0.0, 0.0, 0.6, 0.0]],
            (SPACED, CD, AB, CD),
            [[0.3, 0.4], [0.4, 0.6]],
            id="a space belongs to the word after it",
        ),
        pytest.param(
            [[0.1, 0.4], [0.2, 0.0], [0.3, 0.0], [0.1, 0.6], [0.3, 0.0]],
            (CD, SPACED, CD, AB),
            [[0.15, 0.2], [0.2, 0.3]],
            id="spaces in the target",
        ),
        pytest.param(
            [[0.25, 0.75]], (["i̇st", "rot"], ["x"], ["İst", "Rot"], ["X"]), [[0.25, 0.75]], id="lower case that grew"
        ),
        pytest.param(np.zeros((0, 1)), ([], [], AB, []), np.zeros((0, 2)), id="nothing"),
    ],
)
def test_word_weights_by_hand(weights, sides, expected):
    result = words_from_tokens(np.asarray(weights), *sides)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)


def test_word_weights_of_other_texts_are_errors():
    with pytest.raises(ValueError, match="not the same text"):
        words_from_tokens(np.ones((1, 1)), ["ab"], ["c"], ["a"], ["c"])
