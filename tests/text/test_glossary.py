"""Glossaries: which lines are read, and which terms are found in a line."""

import pytest

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.glossary import find_terms, parse_glossary, read_glossary, split_terms


@pytest.mark.parametrize(
    "data",
    [
        b"Hund\thound\nroter Hut\tred hat\n",
        b"Hund\thound\r\nroter Hut\tred hat\r\n",
        b"\xef\xbb\xbfHund\thound\nroter Hut\tred hat",
        b"\nHund \t hound\n \nroter  Hut\tred hat\n\n",
    ],
)
def test_line_ends_marks_and_blank_lines_are_no_part_of_terms(tmp_path, data):
    path = tmp_path / "terms.tsv"
    path.write_bytes(data)
    terms = [(entry.source, entry.target) for entry in read_glossary(path)]
    assert terms == [("Hund", "hound"), ("roter Hut", "red hat")]


@pytest.mark.parametrize("row", ["Hut, hat", "Hut\t", "\that", "Hut\that\tcap", "\u200b\ta"])
def test_a_malformed_row_is_named_by_its_line(row):
    with pytest.raises(UserError, match=r"terms\.tsv, line 3"):
        parse_glossary("terms.tsv", ["Hund\thound", "", row])


def test_a_glossary_without_terms_is_refused():
    with pytest.raises(UserError, match=r"terms\.tsv"):
        parse_glossary("terms.tsv", ["", " "])


def find(text, *terms, language="de"):
    by_words = {split_terms(term, language): term for term in terms}
    return find_terms(split_terms(text, language), by_words)


@pytest.mark.parametrize(
    ("text", "terms", "found"),
    [
        ("Ein Hund, ein Hund.", ["Hund"], ["Hund"]),
        ("Hundert Hunde", ["Hund"], []),
        ("ein hund", ["Hund"], []),
        ("Hut und Hund", ["Hund", "Hut"], ["Hut", "Hund"]),
        ("ein roter Hut", ["Hut", "roter Hut", "rot"], ["roter Hut"]),
        ("roter Hut und Hut", ["Hut", "roter Hut"], ["roter Hut", "Hut"]),
        ("AT&T und C++", ["AT&T", "C++", "C"], ["AT&T", "C++"]),
        ("a b c d", ["a b", "b c d"], ["b c d"]),
        ("a b c d", ["a b c", "b c d"], ["a b c"]),
        ("a b c d e", ["a b", "b c d", "d e"], ["b c d"]),
        ("a b c d e", ["a b", "b c", "c d e"], ["a b", "c d e"]),
        ("", ["Hund"], []),
    ],
)
def test_terms_are_whole_words_and_the_longest_first(text, terms, found):
    assert find(text, *terms) == found


def test_combining_marks_belong_to_words():
    assert find("हिन्दी में", "हिन", language="hi") == []
    assert find("हिन्दी में", "हिन्दी", language="hi") == ["हिन्दी"]


def test_terms_of_a_language_without_spaces_stand_anywhere():
    assert find("一只大狗在AIR里", "大狗", "AI", language="zh") == ["大狗"]
