"""Random segmentations against the library's own, and against enumeration."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise, product
from pathlib import Path

import pytest

from seq2seq_attn.captions.generator import generate
from seq2seq_attn.text.corpus import read_lines
from seq2seq_attn.text.tokenizers.base import SPACE
from seq2seq_attn.text.tokenizers.sentencepiece import SentencePieceTokenizer, train_sentencepiece

CAPTIONS = [pair.source for pair in generate(300, min_length=4, max_length=20, seed=1)]
ODD = [
    "",
    " ",
    "☃",
    "☃☃ ☃a",
    f"a{SPACE}b{SPACE}",
    f"{SPACE}{SPACE}x",
    "漢字b 漢字",
    "<unk> Hund",
    "Ball\u00a0Ball",
    "9" * 200,
]
MOST_PROBABLE = {"unigram": 1e6, "bpe": 0.0}
COUNT = 4_000


def frequencies(tokenizer: SentencePieceTokenizer, text: str, alpha: float) -> dict[tuple[str, ...], float]:
    drawn = Counter(map(tuple, tokenizer.sample_many([text] * COUNT, alpha, seed=1)))
    return {subwords: count / COUNT for subwords, count in drawn.items()}


def check_frequencies(found: dict[tuple[str, ...], float], probabilities: dict[tuple[str, ...], float]) -> None:
    assert found.keys() <= probabilities.keys()
    for subwords, probability in probabilities.items():
        error = math.sqrt(probability * (1 - probability) / COUNT)
        few = 3 / COUNT  # counts of what is rare are not normally distributed
        assert abs(found.get(subwords, 0.0) - probability) < 5 * error + few


def check_most_probable(tokenizer: SentencePieceTokenizer, lines: list[str], alpha: float) -> None:
    processor = tokenizer._processor
    own = tokenizer.tokenize_many(lines)
    for expected, drawn in zip(own, tokenizer.sample_many(lines, alpha, seed=1), strict=True):
        if drawn != expected:  # two segmentations may have the same probability
            of_expected, of_drawn = (
                sum(processor.get_score(processor.piece_to_id(subword)) for subword in subwords)
                for subwords in (expected, drawn)
            )
            assert "".join(drawn) == "".join(expected)
            assert of_drawn == pytest.approx(of_expected, rel=1e-6)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_the_most_probable_segmentation_is_the_librarys(model_type: str) -> None:
    tokenizer = train_sentencepiece(CAPTIONS, vocab_size=300, model_type=model_type)
    check_most_probable(tokenizer, [*CAPTIONS, *map(str.upper, CAPTIONS), *ODD], MOST_PROBABLE[model_type])


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_the_most_probable_segmentation_of_real_lines_is_the_librarys(multi30k_dir: Path, model_type: str) -> None:
    lines = read_lines(multi30k_dir / "train.de.gz")[:2_000]
    tokenizer = train_sentencepiece(lines, vocab_size=4_000, model_type=model_type)
    check_most_probable(tokenizer, lines, MOST_PROBABLE[model_type])


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0])
def test_a_word_with_an_unknown_character_is_drawn_by_its_probability(alpha: float) -> None:
    tokenizer = train_sentencepiece(CAPTIONS, vocab_size=300)
    processor = tokenizer._processor
    scores = {subword: processor.get_score(processor.piece_to_id(subword)) for subword in tokenizer.subwords()}
    unknown = min(scores.values()) - 10.0
    text = f"{SPACE}ein☃en"
    weights: dict[tuple[str, ...], float] = {}
    for cuts in product([False, True], repeat=len(text) - 1):
        subwords = [text[0]]
        for character, is_cut in zip(text[1:], cuts, strict=True):
            subwords[-1:] = [subwords[-1], character] if is_cut else [subwords[-1] + character]
        if all(subword in scores or len(subword) == 1 for subword in subwords):
            weights[tuple(subwords)] = math.exp(alpha * sum(scores.get(subword, unknown) for subword in subwords))
    assert len(weights) >= 4
    total = sum(weights.values())
    check_frequencies(
        frequencies(tokenizer, "ein☃en", alpha), {subwords: weight / total for subwords, weight in weights.items()}
    )


def bpe_probabilities(
    subwords: tuple[str, ...], skipped: frozenset[int], ranks: dict[str, int], alpha: float
) -> dict[tuple[str, ...], float]:
    """All results of BPE-dropout from here on; `skipped` has the positions of pairs whose merge was skipped."""
    pairs = [(ranks.get(first + second), i) for i, (first, second) in enumerate(pairwise(subwords))]
    left = [(rank, i) for rank, i in pairs if rank is not None and i not in skipped]
    if not left:
        return {subwords: 1.0}
    _, i = min(left)
    after = (*subwords[:i], subwords[i] + subwords[i + 1], *subwords[i + 2 :])
    still = frozenset(j if j < i else j - 1 for j in skipped if not i - 1 <= j <= i + 1)
    results: Counter[tuple[str, ...]] = Counter()
    for share, branch in (
        (alpha, bpe_probabilities(subwords, skipped | {i}, ranks, alpha)),
        (1 - alpha, bpe_probabilities(after, still, ranks, alpha)),
    ):
        for result, probability in branch.items():
            results[result] += share * probability  # type: ignore[assignment]
    return dict(results)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_bpe_skips_each_merge_with_probability_alpha(alpha: float) -> None:
    tokenizer = train_sentencepiece(CAPTIONS, vocab_size=300, model_type="bpe")
    ranks = {subword: rank for rank, subword in enumerate(tokenizer.subwords())}
    probabilities = bpe_probabilities((SPACE, *"kleiner"), frozenset(), ranks, alpha)
    assert len(probabilities) > 5
    check_frequencies(frequencies(tokenizer, "kleiner", alpha), probabilities)
    options = {"out_type": str, "enable_sampling": True, "alpha": alpha, "nbest_size": -1}
    by_library = Counter(tuple(tokenizer._processor.encode("kleiner", **options)) for _ in range(COUNT))
    check_frequencies({subwords: count / COUNT for subwords, count in by_library.items()}, probabilities)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_draw_depends_on_the_line_its_position_and_the_seed_alone(model_type: str) -> None:
    tokenizer = train_sentencepiece(CAPTIONS, vocab_size=300, model_type=model_type)
    drawn = list(tokenizer.sample_many(CAPTIONS, 0.3, seed="1/0"))
    assert list(tokenizer.sample_many(["Hund", *CAPTIONS[1:9]], 0.3, seed="1/0"))[1:] == drawn[1:9]
    assert list(tokenizer.sample_many(CAPTIONS, 0.3, seed="1/1")) != drawn
    assert len({tuple(subwords) for subwords in tokenizer.sample_many(CAPTIONS[:1] * 20, 0.3, seed=1)}) > 1
