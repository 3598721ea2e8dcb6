"""Word alignments between words and between tokens."""

import tracemalloc
import unicodedata

import pytest

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.links import (
    links_between_tokens,
    links_between_words,
    parse_pharaoh,
    word_shares,
    words_of,
)


def test_pharaoh_lines_are_read():
    assert parse_pharaoh("0-0 2-1  10-12\n") == ((0, 0), (2, 1), (10, 12))
    assert parse_pharaoh("") == ()
    assert parse_pharaoh("0-0 2p1 3?10") == ((0, 0), (2, 1), (3, 10))
    assert parse_pharaoh("0-0 2p1 3?10 4-4", only_sure=True) == ((0, 0), (4, 4))
    for bad in ("0", "0-", "a-1", "1-2-3", "0:1", "9" * 5000 + "-1", "1-" + "9" * 10, "²-1"):
        with pytest.raises(UserError, match=r"^alignment .{3,45}"):
            parse_pharaoh(bad)


def test_words_are_separated_by_spaces_and_tabs_only():
    assert words_of(" Un  prix :\t10\u00a0€ \u202f! ") == [
        "Un",
        "prix",
        ":",
        "10\u00a0€",
        "\u202f!",
    ]
    assert words_of("") == words_of(" \t") == []


def test_links_between_tokens_become_links_between_words_and_back():
    source, target = ["▁Wi", "ese", "▁und", "."], ["▁mea", "dow", "▁½", "x"]
    words = ["Wiese", "und."], ["meadow", "½x"]
    links = [(0, 0), (1, 1), (3, 2), (2, 3)]
    assert links_between_words(links, source, target, *words) == [(0, 0), (1, 1)]
    assert links_between_tokens([(0, 0)], *words, source, target) == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]
    assert links_between_tokens([(1, 1), (1, 1)], *words, source, target) == [
        (2, 2),
        (2, 3),
        (3, 2),
        (3, 3),
    ]
    assert links_between_tokens([(1, 0), (0, 0)], *words, *words) == [(0, 0), (1, 0)]
    assert links_between_words([], [], [], [], []) == links_between_tokens([], [], [], [], []) == []
    with pytest.raises(ValueError, match="not the same text"):
        links_between_words(links, source, target, ["Wiese"], ["meadow"])
    with pytest.raises(ValueError, match="not the same text"):
        links_between_tokens([(0, 0)], ["Wiese"], ["meadow"], source, target)


def test_a_token_over_several_words_has_the_links_of_all_and_links_the_first():
    assert links_between_tokens([(0, 1), (1, 0)], ["a", "."], ["x", "y"], ["a."], ["x", "y"]) == [
        (0, 0),
        (0, 1),
    ]
    assert links_between_words([(0, 0)], ["ab.."], ["x"], ["ab", ".."], ["x"]) == [(0, 0)]
    assert links_between_words([(0, 0)], ["a..."], ["x"], ["a", "..."], ["x"]) == [(0, 0)]


@pytest.mark.parametrize(
    "tokens", [["ｶ", "ﾞ"], ["ㅋ", "ㅠ"], ["u", "\u0308", "ber"], ["ﬁ", "x"], ["İ"]]
)
def test_tokens_are_matched_to_words_whatever_they_would_be_joined(tokens):
    word = unicodedata.normalize("NFC", "".join(tokens))
    assert word_shares(tokens, [word]).tolist() == [[1.0]] * len(tokens)


def test_the_links_of_a_long_line_take_memory_in_proportion_to_it():
    words = [f"w{number}" for number in range(4_000)]
    tracemalloc.start()
    links = links_between_words([(i, i) for i in range(len(words))], words, words, words, words)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert links == [(i, i) for i in range(len(words))]
    assert peak < 20e6  # a matrix of tokens and words: 128 MB


def test_combining_marks_take_no_quadratic_time():
    word = "a" + "\u0301\u0323" * 50_000  # minutes in CPython's own decomposition
    assert links_between_words([(0, 0)], [word], ["a"], [word], ["a"]) == [(0, 0)]
