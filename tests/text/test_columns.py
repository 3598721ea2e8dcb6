"""Which columns of a table are in which languages."""

import json

import pytest

from seq2seq_attn.errors import UsageError
from tests.text.conftest import read


@pytest.mark.parametrize(
    "header",
    [
        "fr\ten",
        "FR\tEN",
        "fra\teng",
        "French\tEnglish",
        "target\tsource",
        "French words/sentences\tEnglish words/sentences",
    ],
)
def test_the_first_line_names_languages_or_sides(write, header):
    assert read(write("train.tsv", f"{header}\nBonjour.\tHello.\n")) == [("Hello.", "Bonjour.")]


@pytest.mark.parametrize(
    "names",
    [
        "text_fr,text_en",
        "target_text,source_text",
        "tgt,src",
        "French,english",
    ],
)
def test_names_may_have_more_words_and_other_columns_are_ignored(write, names):
    text = f'id,{names}\n7,"Oui, oui.",Yes.\n8,Non.,No.\n'
    assert read(write("a.csv", text)) == [("Yes.", "Oui, oui."), ("No.", "Non.")]


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ("id,english,indonesian", "id"),
        ("id,en,indonesian", "id"),
        ("id,text_en,text_id", "id"),
        ("No.,English,Norwegian", "no"),
    ],
)
def test_row_numbers_are_not_text(write, header, target):
    text = f"{header}\n1,Yes.,Ya.\n2,No.,Tidak.\n"
    assert read(write("a.csv", text), "en", target) == [("Yes.", "Ya."), ("No.", "Tidak.")]


def test_row_numbers_do_not_replace_a_missing_column(write):
    path = write("b.jsonl", '{"id": 1, "en": "Yes.", "bahasa": "Ya."}\n')
    with pytest.raises(UsageError, match="en, id"):
        read(path, "en", "id")


def test_a_column_named_id_may_be_indonesian(write):
    path = write("a.csv", "id,en\nYa.,Yes.\nTidak.,No.\n")
    assert read(path, "en", "id") == [("Yes.", "Ya."), ("No.", "Tidak.")]


@pytest.mark.parametrize(
    "row",
    [
        {"id": 7, "score": 0.5, "source": "Yes.", "target": "Oui."},
        {"src": "Yes.", "tgt": "Oui."},
        {"en_text": "Yes.", "fr_text": "Oui."},
        {"source": "news", "en": "Yes.", "fr": "Oui."},
        {"source": "Yes.", "target": "Oui.", "meta": {"source": "Ubuntu"}},
        {"translation": {"en": "Yes.", "fr": "Oui."}, "by": {"id": "x"}, "in": {"id": "y"}},
    ],
)
def test_keys_name_languages_or_sides(write, row):
    assert read(write("train.jsonl", json.dumps(row))) == [("Yes.", "Oui.")]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("3,2", [("c", "b"), ("f", "e")]),
        ("a,C", [("d", "f")]),  # a name says that the first line holds names
    ],
)
def test_columns_by_number_or_name(write, columns, expected):
    assert read(write("a.tsv", "a\tb\tc\nd\te\tf\n"), columns=columns) == expected


def test_a_first_line_of_names_is_no_pair_if_columns_are_numbers(write):
    assert read(write("a.tsv", "fr\ten\nOui.\tYes.\n"), columns="2,1") == [("Yes.", "Oui.")]


def test_both_columns_may_be_in_one_language(write):
    assert read(write("a.tsv", "en\ten\na dgo\ta dog\n"), "en", "en") == [("a dgo", "a dog")]


def test_keys_are_named_without_a_header(write):
    row = '{"fr": "b", "en": "a", "en_long": "aa"}'
    assert read(write("a.jsonl", row), columns="en_long,fr") == [("aa", "b")]


def test_column_numbers_may_agree_with_the_order_of_the_keys(write):
    assert read(write("a.jsonl", '{"id": "x", "fr": "b", "en": "a"}'), columns="2,1") == [
        ("a", "b")
    ]


@pytest.mark.parametrize("keys", [("source", "target"), ("en", "fr")])
def test_numbers_that_contradict_keys_are_refused(write, keys):
    row = json.dumps(dict.fromkeys(keys, "x"))
    with pytest.raises(UsageError, match=rf"^a: .*2,1.*--columns {','.join(keys)}"):
        read(write("a", row), columns="2,1")


@pytest.mark.parametrize("first", ["anglais\tindien", "en\thi"])
def test_scripts_do_not_contradict_the_first_line(write, first):
    with pytest.raises(UsageError, match=r"^a\.tsv: .*--columns"):
        read(write("a.tsv", f"{first}\nबिल्ली\tcat\n"), "en", "hi")


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ("ID\tenglish\tindonesian", "id"),
        ("source\tinput\toutput", "fr"),
    ],
)
def test_several_columns_that_may_be_a_side_are_not_clear(write, header, target):
    with pytest.raises(UsageError, match=r"^a\.tsv: .*--columns"):
        read(write("a.tsv", f"{header}\na1\tThe dog\tX\n"), "en", target)


def test_longer_names_do_not_compete_with_names_of_languages(write):
    text = "en\ten_tokens\tfr\nYes.\tYes .\tOui.\n"
    assert read(write("a.tsv", text)) == [("Yes.", "Oui.")]


def test_scripts_of_two_columns_in_one_script_tell_nothing(write):
    with pytest.raises(UsageError, match=r"1: 'cat', 2: 'billi', 3: 'बिल्ली'.*--columns"):
        read(write("a.tsv", "cat\tbilli\tबिल्ली\n"), "en", "hi")


@pytest.mark.parametrize(
    ("name", "text", "languages", "columns"),
    [
        ("a.tsv", "Hello.\tBonjour.\n", ("en", "fr"), ""),
        ("a.tsv", "en\tFrench\n", ("de", "en"), ""),
        ("a.tsv", "English\tanglais\n", ("en", "fr"), ""),
        ("a.tsv", "en\tfr\nHello.\tBonjour.\n", ("de", "en"), ""),
        ("a.tsv", "en\tfr\nHello.\tBonjour.\n", ("fr", "fr"), ""),
        ("a.tsv", "en\tfr\nHello.\tBonjour.\n", ("en", "fr"), "2,1"),
        ("a.tsv", "en_a\ten_b\tfr\nx\ty\tz\n", ("en", "fr"), ""),
        ("a.tsv", "Hello.\tBonjour.\n", ("en", "fr"), "1,3"),
        ("a.tsv", "Hello.\tBonjour.\n", ("en", "fr"), "1"),
        ("a.tsv", "Hello.\tBonjour.\n", ("en", "fr"), "en,fr"),
        ("a.tsv", "Hello.\tBonjour.\n", ("en", "fr"), "2,2"),
        ("a.jsonl", '{"en": "a", "fr": "b"}\n', ("en", "en"), ""),
        ("a.jsonl", '{"en": "a"}\n', ("en", "fr"), ""),
    ],
)
def test_columns_that_are_not_clear_are_asked_for_with_the_first_row(
    write, name, text, languages, columns
):
    first = "1: 'en" if name == "a.jsonl" else f"1: '{text.split(chr(9))[0]}"
    with pytest.raises(UsageError, match=rf"^{name}: .*{first}.*--columns"):
        read(write(name, text), *languages, columns)
