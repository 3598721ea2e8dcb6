"""Which files a text consists of, and in which languages."""

import os

import pytest

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.corpus import find_text
from tests.text.conftest import PAIRS, as_lines, read

SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\nHello.\n"
LANGUAGES = ("en", "fr")


@pytest.fixture
def files(write):
    """Texts of English and French, and other files."""
    write("train.en", as_lines([source for source, _ in PAIRS]))
    write("train.fr", as_lines([target for _, target in PAIRS]))
    write("folder/train.txt", "x\n")
    write("half.en", "x\n")
    write("plain.tsv", "Hello.\tBonjour.\n")
    write("words.tsv", "Katze\tcat\n")
    write("named.tsv", "fr\ten\nBonjour.\tHello.\n")
    write("three.tsv", "hau\tibo\nbarewa\tele\n")
    write("named.jsonl", '{"id": 3, "translation": {"de": "a", "en": "b"}}\n')
    os.mkfifo("pipe")


@pytest.mark.parametrize(
    "suffixes",
    [
        ("en", "fr"),
        ("en.gz", "fr.gz"),
        ("EN", "FR"),
        ("en.txt", "fr.txt"),
        ("EN.txt", "fr.txt.gz"),
    ],
)
def test_a_prefix_has_a_file_for_each_language(write, suffixes):
    """A suffix may be in capitals or end in `.txt`."""
    for side, suffix in enumerate(suffixes):
        write(f"corpus/train.v2.{suffix}", as_lines([pair[side] for pair in PAIRS]))
    assert read("corpus/train.v2") == PAIRS


def test_a_suffix_in_small_letters_comes_first(write):
    for suffix, line in (("EN", "No."), ("en", "Yes."), ("fr", "Oui."), ("txt", "x")):
        write(f"train.{suffix}", f"{line}\n")
    assert read("train") == [("Yes.", "Oui.")]


def test_files_are_named_source_first(files):
    assert read(["train.en", "train.fr"]) == PAIRS


@pytest.mark.parametrize("line", ['["x", "y"]  # 0', "a\tb", "a, b"])
def test_named_files_are_lines_even_if_they_look_like_a_table(write, line):
    assert read([write("a.code", f"{line}\n"), write("b.text", "x\n")]) == [(line, "x")]


@pytest.mark.parametrize("text", [SUBTITLES, '<?xml version="1.0"?>\n', "<tmx></tmx>\n"])
def test_documents_are_no_lines(write, text):
    with pytest.raises(UserError, match=r"^a: "):
        read([write("a", text), write("b", "x\n")])


@pytest.mark.parametrize(
    ("spec", "languages", "expected"),
    [
        ("train", ("en", None), ("en", "fr")),
        ("train", (None, "en"), ("fr", "en")),
        (["train.fr", "train.en"], (None, None), ("fr", "en")),
        ("named.tsv", (None, None), ("fr", "en")),
        ("three.tsv", (None, None), ("hau", "ibo")),
        ("named.jsonl", (None, None), ("de", "en")),
        ("named.jsonl", (None, "de"), ("en", "de")),
    ],
)
def test_languages_come_from_names_where_they_are_clear(files, spec, languages, expected):
    assert find_text(spec, *languages).languages == expected


@pytest.mark.parametrize(
    ("names", "languages"),
    [
        (["train.de", "train.en"], ("de", "en-GB")),
        (["train.pt_BR", "train.en"], ("pt", "en")),
        (["train.de", "train.en"], ("de", "tlh")),
        (["train.en", "train.txt"], ("de", "en")),
        (["x.en", "y.en"], ("typo", "word")),
        (["wrong.en", "right.en"], ("en", "en")),
    ],
)
def test_file_names_may_say_less_or_more_than_the_languages(write, names, languages):
    for name in names:
        write(name, "x\n")
    assert find_text(names, *languages).languages == languages


@pytest.mark.parametrize(
    ("spec", "languages", "message"),
    [
        ("train.en", LANGUAGES, "train.en"),
        ("folder", LANGUAGES, "folder"),
        ("half", LANGUAGES, "half.fr"),
        ("absent", LANGUAGES, "absent"),
        (["train.en", "absent.fr"], LANGUAGES, "absent.fr"),
        (["train.en", "train.en"], LANGUAGES, "the same file"),
        (["a", "b", "c"], LANGUAGES, "a, b, c"),
        (["pipe", "half.en"], LANGUAGES, "pipe"),
        ("train", (None, None), "train"),
        ("train", ("de", None), "--target-language"),
        ("plain.tsv", (None, None), "plain.tsv"),
        ("words.tsv", ("de", None), "--target-language"),  # `cat` is a word
        ("train.en", (None, None), "train.en"),
        (["plain.tsv", "train.en"], (None, None), "plain.tsv, train.en"),
        ("train", ("en", "en"), "the same file"),
        (["train.fr", "train.en"], LANGUAGES, "train.fr, train.en.* en, fr"),
        (["train.cs.gz", "train.fr"], ("de", "en"), "train.cs.gz, train.fr.* de, en"),
        ("plain.tsv", ("none", "en"), "plain.tsv"),
    ],
)
def test_a_name_or_language_that_is_nearly_right_is_refused(files, spec, languages, message):
    with pytest.raises(UserError, match=message):
        find_text(spec, *languages)


@pytest.mark.parametrize(
    ("source", "target", "languages"),
    [
        ("cat", "बिल्ली", ("en", "fr")),
        ("cat", "猫です", ("en", "jp")),
        ("cat", "billi", ("en", "hi")),
        ("cat 猫", "猫 cat", ("en", "th")),
    ],
)
def test_a_side_that_is_not_in_the_script_of_its_language_is_refused(
    write, source, target, languages
):
    names = [write("a.txt", f"{source}\n"), write("b.txt", f"{target}\n")]
    with pytest.raises(UsageError, match=rf"{languages[1]} .*{source}', '{target}"):
        find_text(names, *languages)


@pytest.mark.parametrize(
    ("target", "language"),
    [
        ("billi", "hi_Latn"),
        ("мушук", "uz"),
        ("मनु", "pi_Deva"),
        ("12:30", "ja"),
        ("12/31", "machine"),
        ("TensorFlow 很好用吗", "zh"),
    ],
)
def test_a_script_may_be_named_and_terms_may_be_foreign(write, target, language):
    names = [write("a.txt", "cat\n"), write("b.txt", f"{target}\n")]
    assert find_text(names, "en", language).languages == ("en", language)


def test_letters_of_one_script_on_both_sides_are_no_exchange(write):
    names = [write("a.txt", "kot\n"), write("b.txt", "cat\n")]
    assert find_text(names, "sr", "en").languages == ("sr", "en")
