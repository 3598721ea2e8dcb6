"""Alignment scores against hand-made cases and a plain reference."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seq2seq_attn.metrics.alignment import score_attention, shift_weights, words_from_tokens


def from_links(links, shape=(7, 5)):
    """Weights whose largest are those of the links, at most one per target position."""
    weights_TS = np.zeros(shape)
    for source, target in links:
        weights_TS[target] = 0.1
        weights_TS[target, source] = 0.6
    return weights_TS


def test_error_rate_by_hand():
    # Och and Ney with P = S: A = 3 links, S = 2, 1 in both: 1 - (1 + 1) / (3 + 2)
    score = score_attention([from_links([(0, 0), (1, 1), (3, 3)])], [[(0, 0), (2, 2)]])
    assert (score.error_rate, score.precision, score.recall) == pytest.approx((0.6, 1 / 3, 1 / 2))
    assert score.mass == pytest.approx((0.6 + 0.0) / 2)
    perfect = score_attention([from_links([(0, 0)]), from_links([(1, 0)])], [[(0, 0)], [(1, 0)]])
    assert (perfect.error_rate, perfect.precision, perfect.recall) == (0.0, 1.0, 1.0)
    nothing = score_attention([from_links([])], [[(0, 0)]])
    assert (nothing.error_rate, nothing.precision, nothing.recall) == (1.0, 0.0, 0.0)
    assert score_attention([from_links([])], [[]]).error_rate == 0.0
    assert np.isnan(score_attention([np.zeros((0, 4))], [[]]).mass)


def test_scores_equal_a_plain_reference():
    rng = random.Random(4)
    predicted = [[(rng.randrange(5), t) for t in range(7) if rng.random() < 0.7] for _ in range(30)]
    gold = [rng.sample([(s, t) for s in range(5) for t in range(7)], rng.randint(0, 9)) for _ in range(30)]
    num_common = sum(len([link for link in a if link in g]) for a, g in zip(predicted, gold, strict=True))
    num_predicted, num_gold = sum(map(len, predicted)), sum(map(len, gold))
    score = score_attention([*map(from_links, predicted)], gold)
    expected = (1 - 2 * num_common / (num_predicted + num_gold), num_common / num_predicted, num_common / num_gold)
    assert (score.error_rate, score.precision, score.recall) == pytest.approx(expected, abs=1e-9)


def test_mass_is_the_mean_weight_on_linked_positions():
    weights = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
    assert score_attention([weights], [[(0, 0), (1, 1), (2, 1)]]).mass == pytest.approx((0.7 + 0.7) / 2)
    with pytest.raises(ValueError, match="3-0"):
        score_attention([weights], [[(3, 0)]])
    with pytest.raises(ValueError, match="argument"):
        score_attention([weights], [[], []])


def test_attention_that_is_late_by_one_scores_only_when_shifted():
    gold = [(2, 0), (0, 1), (1, 2)]
    weights = np.full((4, 3), 0.05)
    for source, target in gold:
        weights[target + 1, source] = 0.9  # it looks at the right word one step too late
    weights[0] = [0.1, 0.8, 0.1]
    late, shifted = score_attention([weights], [gold]), score_attention([weights], [gold], shift=1)
    assert shifted.precision == 1.0
    assert shifted.recall == 1.0
    assert shifted.error_rate == 0.0
    assert shifted.mass == pytest.approx(0.9)
    assert late.recall == 0.0
    assert late.mass < 0.1


def test_words_without_a_shifted_step_are_not_held_against_attention():
    gold = [(2, 0), (0, 1), (1, 2)]
    late, early = np.zeros((3, 3)), np.zeros((3, 3))
    for source, target in gold:
        if target + 1 < 3:
            late[target + 1, source] = 0.9
        if target > 0:
            early[target - 1, source] = 0.9
    late[0], early[2] = 0.3, 0.3
    for weights, shift in ((late, 1), (early, -1)):
        score = score_attention([weights], [gold], shift=shift)
        assert (score.error_rate, score.recall, score.mass) == (0.0, 1.0, pytest.approx(0.9))


def test_shift_runs_off_the_end_into_zeros():
    weights = np.eye(3)
    np.testing.assert_array_equal(shift_weights(weights, 1), [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(shift_weights(weights, -1), [[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(shift_weights(weights, 0), weights)
    np.testing.assert_array_equal(shift_weights(weights, 5), np.zeros((3, 3)))


def cut(text: str, rng: random.Random) -> list[str]:
    """A text without blanks in pieces of one to four characters."""
    pieces = []
    while text:
        size = rng.randint(1, 4)
        pieces, text = [*pieces, text[:size]], text[size:]
    return pieces


def plain_word_weights(weights, source_tokens, target_tokens, source_words, target_words):
    """Character by character: a token's weight is spread evenly over its characters."""
    of_source, of_target = (
        [place for place, token in enumerate(tokens) for _ in token] for tokens in (source_tokens, target_tokens)
    )
    found, row_start = [], 0
    for target_word in target_words:
        inside = of_target[row_start : row_start + len(target_word)]
        row_start += len(target_word)
        parts = {token: inside.count(token) / len(target_tokens[token]) for token in set(inside)}
        row, column_start = [], 0
        for source_word in source_words:
            columns = of_source[column_start : column_start + len(source_word)]
            column_start += len(source_word)
            mass = sum(
                part * sum(weights[token][column] / len(source_tokens[column]) for column in columns)
                for token, part in parts.items()
            )
            row.append(mass / sum(parts.values()))
        found.append(row)
    return found


def test_word_weights_equal_a_plain_reference():
    rng = random.Random(8)
    for _ in range(25):
        texts = ["".join(rng.choices("abcdef", k=rng.randint(1, 25))) for _ in range(2)]
        (source_tokens, source_words), (target_tokens, target_words) = ((cut(t, rng), cut(t, rng)) for t in texts)
        weights = np.random.default_rng(rng.randint(0, 99)).random((len(target_tokens) + 1, len(source_tokens) + 1))
        sides = (source_tokens, target_tokens, source_words, target_words)
        found = words_from_tokens(weights, *sides)
        np.testing.assert_allclose(found, plain_word_weights(weights.tolist(), *sides), rtol=0, atol=1e-9)


def test_word_weights_add_over_the_source_and_average_over_the_target():
    weights = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.1, 0.3], [0.2, 0.2, 0.5, 0.1]])
    found = words_from_tokens(weights, ["▁Wi", "ese", "."], ["▁mea", "dow"], ["Wiese", "."], ["Meadow"])
    np.testing.assert_allclose(found, [[0.45, 0.2]], rtol=0, atol=1e-12)
    same = words_from_tokens(weights[:2, :3], ["a", "b", "c"], ["d", "e"], ["a", "b", "c"], ["d", "e"])
    np.testing.assert_array_equal(same, weights[:2, :3])  # without EOS on either side


def test_a_blank_belongs_to_the_word_after_it():
    weights = np.array([[0.1, 0.2, 0.3, 0.1, 0.3], [0.4, 0.0, 0.0, 0.6, 0.0]])
    found = words_from_tokens(weights, ["▁", "a", "▁", "b", "▁"], ["c", "d"], ["a", "b"], ["c", "d"])
    np.testing.assert_allclose(found, [[0.3, 0.4], [0.4, 0.6]], rtol=0, atol=1e-12)
    averaged = words_from_tokens(weights.T, ["c", "d"], ["▁", "a", "▁", "b", "▁"], ["c", "d"], ["a", "b"])
    np.testing.assert_allclose(averaged, [[0.15, 0.2], [0.2, 0.3]], rtol=0, atol=1e-12)


def test_lower_cased_tokens_that_grew_are_still_found():
    weights = np.array([[0.25, 0.75]])
    found = words_from_tokens(weights, ["i̇st", "rot"], ["x"], ["İst", "Rot"], ["X"])
    np.testing.assert_array_equal(found, weights)


def test_word_weights_of_blank_sides_and_of_other_texts():
    np.testing.assert_array_equal(words_from_tokens(np.zeros((0, 1)), [], [], ["a", "b"], []), np.zeros((0, 2)))
    with pytest.raises(ValueError, match="not the same text"):
        words_from_tokens(np.ones((1, 1)), ["ab"], ["c"], ["a"], ["c"])
    with pytest.raises(ValueError, match=r"shape \(1, 3\) do not fit 1 and 1 tokens"):
        words_from_tokens(np.ones((1, 3)), ["a"], ["c"], ["a"], ["c"])
