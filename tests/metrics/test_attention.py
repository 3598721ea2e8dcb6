"""Entropy, coverage, word overlap and alignment scores against hand-made cases and plain Python."""

import math

import numpy as np
import pytest

from seq2seq_attn.metrics.attention import (
    AttentionStatistics,
    GoldPair,
    attention_counts,
    attention_links,
    join_statistics,
    overlap_counts,
    score_attention,
    words_from_tokens,
)

DRAW = np.random.default_rng(3)
WORDS = "a A dog Dog runs can't well-known 3.5 . , ... and two".split()
WEIGHTS = [
    DRAW.dirichlet(np.full(num_source, 0.3), num_target)
    for num_target, num_source in DRAW.integers(2, 10, size=(40, 2))
]
TEXTS = [
    (DRAW.choice(WORDS, DRAW.integers(10)).tolist(), DRAW.choice(WORDS, DRAW.integers(10)).tolist())
    for _ in WEIGHTS
]


@pytest.fixture
def statistics():
    overlap = [overlap_counts(*pair) for pair in TEXTS]
    counts = [attention_counts(weights, weights[:-1, :-1]) for weights in WEIGHTS]
    return AttentionStatistics(np.array(overlap), np.array(counts))


def entropy(weights):
    return attention_counts(np.array([weights]), np.array([weights]))[0]


def test_mass_outside_the_source_counts_as_one_more_position():
    assert entropy([0.25, 0.25]) == pytest.approx(entropy([0.25, 0.25, 0.5]))


def test_weights_above_a_sum_of_1_are_divided_by_it():
    assert entropy([2.0, 1.0, 1.0]) == pytest.approx(entropy([0.5, 0.25, 0.25]))
    counts = attention_counts(np.array([[2.0, 0.5, 0.0]]), np.array([[2.5, 0.0]]))
    assert counts[2:] == (1, 0, 2)


def test_entropy_and_coverage_equal_plain_python(statistics):
    entropies = []
    received = []
    for weights in WEIGHTS:
        for row in weights.tolist():
            entropies.append(-sum(weight * math.log(weight) for weight in row if weight > 0))
        received += weights[:-1, :-1].sum(axis=0).tolist()
    num_dropped = sum(weight < 0.2 for weight in received)
    num_repeated = sum(weight > 2.0 for weight in received)
    score = statistics.score()
    assert score.entropy == pytest.approx(sum(entropies) / len(entropies), abs=1e-9)
    assert score.dropped == pytest.approx(num_dropped / len(received), abs=1e-9)
    assert score.repeated == pytest.approx(num_repeated / len(received), abs=1e-9)
    assert 0 < score.repeated < score.dropped < 1


def test_missing_and_excess_words_equal_plain_python(statistics):
    num_missing = num_excess = num_expected = num_written = 0
    for hypothesis, reference in TEXTS:
        left = [word.lower() for word in reference if word.strip(".,")]
        written = [word.lower() for word in hypothesis if word.strip(".,")]
        num_expected += len(left)
        num_written += len(written)
        for word in written:
            if word in left:
                left.remove(word)
            else:
                num_excess += 1
        num_missing += len(left)
    score = statistics.score()
    assert score.missing == pytest.approx(num_missing / num_expected, abs=1e-9)
    assert score.excess == pytest.approx(num_excess / num_written, abs=1e-9)


def test_counts_of_buckets_and_of_pooled_sets_add_up(statistics):
    odd = statistics.subset(np.arange(1, 40, 2))
    even = statistics.subset(np.arange(0, 40, 2))
    assert len(odd.overlap_N4) == 20
    joined = join_statistics([odd, even]).score()
    expected = statistics.score()
    assert joined.entropy == pytest.approx(expected.entropy, abs=1e-9)
    assert (joined.dropped, joined.missing) == (expected.dropped, expected.missing)


def test_thresholds_are_strict():
    weights = np.array([[0.2, 0.8, 0.0], [0.0, 1.0, 0.0], [0.0, 0.2, 0.8]])
    assert attention_counts(weights, weights)[2:] == (0, 0, 3)  # 0.2 and 2.0 exactly: neither
    assert attention_counts(weights, weights * [[0.9, 1.1, 1]])[2:] == (1, 1, 3)


def test_without_attention_or_words_there_is_no_value():
    statistics = AttentionStatistics(np.array([overlap_counts([], ["a"])]), np.zeros((1, 5)))
    values = {"entropy": None, "dropped": None, "repeated": None, "missing": 1.0, "excess": None}
    assert statistics.score().to_dict() == values  # without gold links
    # an empty hypothesis: no target word looked at either source word
    assert attention_counts(np.zeros((0, 1)), np.zeros((0, 2))) == (0, 0, 2, 0, 2)


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        # Och and Ney with P = S: A = 3 links, S = 2, 1 in both: 1 - (1 + 1) / (3 + 2)
        ([(0, 0), (1, 1), (3, 3)], [(0, 0), (2, 2)], (0.6, 1 / 3, 1 / 2)),
        ([], [(0, 0)], (1.0, 0.0, 0.0)),
        ([], [], (0.0, 0.0, 0.0)),
    ],
)
def test_rates_by_hand(predicted, gold, expected):
    weights_TS = np.zeros((7, 5))
    for source, target in predicted:
        weights_TS[target] = 0.1
        weights_TS[target, source] = 0.6
    score = score_attention([GoldPair(weights_TS, gold, gold)])
    assert (score.error_rate, score.precision, score.recall) == pytest.approx(expected)


def test_possible_links_count_for_precision_and_sure_links_for_recall():
    """Och and Ney: 1 - (|A and S| + |A and P|) / (|A| + |S|), with A = 3, S = 2, P = 3."""
    weights_TS = np.eye(3)
    sure = [(0, 0), (2, 0)]
    score = score_attention([GoldPair(weights_TS, [*sure, (1, 1)], sure)])
    expected = (1 - (1 + 2) / (3 + 2), 2 / 3, 1 / 2)
    assert (score.error_rate, score.precision, score.recall) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("row", "links"),
    [
        ([0.2, 0.5], [(1, 0)]),
        ([0.3, 0.2], [(0, 0)]),  # half is on the end
        ([0.5, 0.5], [(0, 0)]),
        ([0.0, 0.0], []),
    ],
)
def test_a_word_is_linked_to_the_heaviest_word_whatever_is_on_the_end(row, links):
    assert attention_links(np.array([row])) == links


def test_mass_is_the_mean_weight_on_linked_positions():
    weights = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
    gold = [(0, 0), (1, 1), (2, 1)]
    score = score_attention([GoldPair(weights, gold, gold)])
    assert score.mass == pytest.approx((0.7 + 0.7) / 2)
    assert np.isnan(score_attention([GoldPair(np.zeros((0, 4)), [], [])]).mass)


@pytest.mark.parametrize("shift", [1, -1])
def test_attention_that_is_off_by_one_scores_only_when_shifted(shift):
    """Words without a shifted step are not held against it."""
    gold = [(2, 0), (0, 1), (1, 2)]
    weights = np.full((3, 3), 0.05)
    weights[0 if shift > 0 else 2] = [0.1, 0.8, 0.1]
    for source, target in gold:
        if 0 <= target + shift < 3:  # it looks at the right word one step too late, or too early
            weights[target + shift, source] = 0.9
    shifted = score_attention([GoldPair(weights, gold, gold)], shift=shift)
    assert (shifted.error_rate, shifted.precision, shifted.recall) == (0.0, 1.0, 1.0)
    assert shifted.mass == pytest.approx(0.9)
    plain = score_attention([GoldPair(weights, gold, gold)])
    assert plain.recall < 0.5
    assert plain.mass < 0.4


SPACED = "▁ a ▁ b ▁"


@pytest.mark.parametrize(
    ("weights", "tokens", "words", "expected"),
    [
        (  # subwords with <eos>
            [[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.1, 0.3], [0.2, 0.2, 0.5, 0.1]],
            ("▁Wi ese .", "▁mea dow"),
            ("Wiese .", "Meadow"),
            [[0.45, 0.2]],
        ),
        (  # a space belongs to the word after it
            [[0.1, 0.2, 0.3, 0.1, 0.3], [0.4, 0.0, 0.0, 0.6, 0.0]],
            (SPACED, "c d"),
            ("a b", "c d"),
            [[0.3, 0.4], [0.4, 0.6]],
        ),
        (  # lower case that grew
            [[0.25, 0.75]],
            ("i̇st rot", "x"),
            ("İst Rot", "X"),
            [[0.25, 0.75]],
        ),
        (np.zeros((0, 1)), ("", ""), ("a b", ""), np.zeros((0, 2))),
    ],
)
def test_word_weights_by_hand(weights, tokens, words, expected):
    """Tokens and words: of the source, of the target."""
    result = words_from_tokens(np.asarray(weights), *map(str.split, tokens + words))
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)


def test_word_weights_of_other_texts_are_errors():
    with pytest.raises(ValueError, match="not the same text"):
        words_from_tokens(np.ones((1, 1)), ["ab"], ["c"], ["a"], ["c"])
