"""Attention analyzed: forced decoding, words and links together, against plain Python on a small
real model."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from typing import NamedTuple

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.evaluation.attention import analyze_attention, gold_pairs
from seq2seq_attn.evaluation.test_sets import EvaluationSet, Languages, caption_links, concatenated
from seq2seq_attn.metrics.attention import GoldPair, score_attention, score_shifts
from seq2seq_attn.text.captions import find_captions, tokenize_caption
from seq2seq_attn.text.lines import iter_lines
from seq2seq_attn.text.links import parse_pharaoh
from seq2seq_attn.translate.scoring import force_decode
from tests.toy_run import make_toy_run, toy_config


class Pair(NamedTuple):
    """A caption and its links."""

    source: str
    target: str
    links: Sequence[tuple[int, int]]


ROWS = zip(*map(iter_lines, find_captions(None, "de", "en")["test"]), strict=True)
SHORT = [*islice((row for row in ROWS if len(row[0].split()) < 9), 12)]
PAIRS = [Pair(source, target, parse_pharaoh(links)) for source, target, links in SHORT]
SOURCE, TARGET, LINKS = map(list, zip(*SHORT, strict=True))
CAPTIONS = EvaluationSet("test", SOURCE, TARGET, caption_links(SOURCE, TARGET, LINKS))


@pytest.fixture(scope="module")
def translators(module_path):
    make_toy_run(module_path / "characters", toy_config(tokenizer="characters"))
    make_toy_run(module_path / "sentencepiece")
    make_toy_run(module_path / "fixed", toy_config(attention="fixed"))
    return {
        name: load(module_path / name, "cpu") for name in ("characters", "sentencepiece", "fixed")
    }


def character_ranges(line):
    """For each word its positions among the line's characters, the space before it included."""
    ranges = []
    end = 0
    for word in tokenize_caption(line):
        start = line.index(word, end)
        ranges.append(range(end, start + len(word)))
        end = start + len(word)
    return ranges


def plain_words(weights, pair):
    """Between words, from weights between characters: added over the source, averaged over the
    target."""
    return [
        [
            sum(float(weights[t][s]) for t in target for s in source) / len(target)
            for source in character_ranges(pair[0])
        ]
        for target in character_ranges(pair[1])
    ]


def test_alignment_of_character_tokens_equals_plain_python(translators):
    decoded = force_decode(translators["characters"], SOURCE, TARGET)
    weighted = []
    for translation, pair in zip(decoded, PAIRS, strict=True):
        weights_TS = np.array(plain_words(translation.attention, pair))
        weighted.append(GoldPair(weights_TS, pair.links, pair.links))
    analyzed = analyze_attention(
        CAPTIONS, TARGET, Languages(), translators["characters"], batch_size=5
    )
    scores = score_shifts(analyzed.gold)
    assert list(scores) == [-1, 0, 1]
    for shift, score in scores.items():
        expected = score_attention(weighted, shift=shift)
        # batches of 5: float32 rounding
        assert asdict(score) == pytest.approx(asdict(expected), abs=1e-6)
    assert len({score.mass for score in scores.values()}) == 3


def linked_words(gold):
    """How often gold links connect a source word with a target word."""
    counts = Counter()
    for links, source, target in zip(gold.links, gold.source_words, gold.target_words, strict=True):
        for source_position, target_position in parse_pharaoh(links):
            counts[source[source_position], target[target_position]] += 1
    return counts


def test_concatenated_captions_keep_their_words_and_links():
    joined = concatenated(CAPTIONS, 3)
    assert (joined.name, len(joined.source), joined.num_concatenated) == ("test.x3", 4, 3)
    assert linked_words(joined.gold) == linked_words(CAPTIONS.gold)
    for lines, words in (
        (joined.source, joined.gold.source_words),
        (joined.references, joined.gold.target_words),
    ):
        assert ["".join(line.split()) for line in lines] == ["".join(row) for row in words]


def test_analysis_of_hypotheses_equals_plain_python(translators):
    translator = translators["sentencepiece"]
    hypotheses = [*TARGET[1:], ""]
    analyzed = analyze_attention(CAPTIONS, hypotheses, Languages(), translator, batch_size=1)
    score = analyzed.score()
    entropies = [
        -sum(w * math.log(w) for w in row if w > 0)
        for decoded in force_decode(translator, SOURCE, hypotheses, batch_size=1)
        for row in decoded.attention.astype(float).tolist()
    ]
    assert score.entropy == pytest.approx(sum(entropies) / len(entropies), abs=1e-9)
    assert analyzed.attention_N5[-1, 2] == analyzed.attention_N5[-1, 4] > 0  # blank: all dropped
    assert 0 < score.missing < 1


def test_lines_whose_words_are_not_their_tokens_count_as_unaligned_with_a_warning(
    translators, caplog
):
    gold = caption_links(["Ganz anders."] * 2 + SOURCE[2:], TARGET, ["", "", *LINKS[2:]])
    decoded = force_decode(translators["characters"], SOURCE, TARGET)
    pairs = zip(decoded, gold.source_words, gold.target_words, strict=True)
    with caplog.at_level("WARNING"):
        scores = score_shifts(gold_pairs(pairs, gold.links))
    assert len(caplog.records) == 1
    assert "2 of 12" in caplog.text
    assert scores[0].num_pairs == 12
