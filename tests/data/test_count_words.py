"""The words of a training text, and the stand-ins that are found in it."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq_attn.data import count_words as module
from seq2seq_attn.data.count_words import count_words, find_pairs
from seq2seq_attn.data.vocabs import check_unknown
from seq2seq_attn.errors import UserError
from seq2seq_attn.text.known_words import KnownWords, StandIn, words_in
from seq2seq_attn.text.normalize import normalize
from seq2seq_attn.text.vocab import build_vocab

SOURCES = ["Paul sieht drei Hunde.", "Ein Hund, Nummer 77.", "Der Hund sieht Paul.", "Oh Nora!"] * 5
TARGETS = ["Paul sees three dogs.", "A dog, number 77.", "The dog sees Paul.", "Oh Nora!"] * 5


def test_stand_ins_are_words_that_translate_each_other(tmp_path):
    words = count(tmp_path, [*SOURCES, *["eins"] * 90], [*TARGETS, *["one thing"] * 90])
    assert StandIn("drei", "three") in words.numbers
    assert StandIn("Paul", "Paul") in words.others
    assert StandIn("Nummer", "number") in words.others


def test_stand_ins_are_names_then_frequent_words(tmp_path):
    common = [*["eins"] * 90, *["tennis"] * 4]
    words = count(tmp_path, [*SOURCES, *common], [*TARGETS, *common])
    sources = [pair.source for pair in words.others]
    assert sources.index("Paul") < sources.index("Nummer") < sources.index("tennis")


def test_words_are_known_and_rare_numbers_are_not(tmp_path):
    words = count(tmp_path, [*SOURCES, "Nummer 4711"], [*TARGETS, "number 4711"])
    assert {"Hunde", "Nora", "77"} <= words.known
    assert words.known.isdisjoint({"4711", "Hunde."})


@given(
    st.text(st.sampled_from("aÄΣİ7%-+.,'’([{}) \t\x1c\u00a0\u2028\u200b\u0301\ufeff你ก")),
    st.booleans(),
)
def test_a_line_has_the_words_of_its_pieces_between_spaces(line, lowercase):
    pieces = [normalize(piece, lowercase=lowercase) for piece in line.split()]
    words = [word for piece in pieces for word in words_in(piece)]
    assert words_in(normalize(line, lowercase=lowercase)) == words


def test_words_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_WORDS", 3)
    lines = [f"w{index} oft oft" for index in range(40)]
    words = count(tmp_path, lines, lines)
    assert "oft" in words.known
    assert len(words.known) == 3


def test_kinds_that_the_text_rewrites_are_not_copied(tmp_path):
    dates = [f"{day} May" for day in range(10, 31)]
    assert "number" not in count(tmp_path, dates, [f"05-{day}" for day in range(10, 31)]).copied
    assert "numbers" not in count(tmp_path, ["1 2", "der Hund"], ["2 1", "the dog"]).copied
    assert count(tmp_path, dates, [f"May {day}" for day in range(10, 31)]).copied[-1] == "numbers"


def test_words_of_a_pronunciation_dictionary_are_not_copied(tmp_path):
    words = ["".join(letters) for letters in product("ABCDEFGHIJKLMNOPQRSTUVWXYZ", repeat=2)]
    sounds = ["EH" if word == "EH" else "W AAH" for word in words]
    assert count(tmp_path, words, sounds).copied == []


def test_the_words_of_a_phrase_are_taken_once():
    sentences = [{"New", "York", str(index)} for index in range(10)]
    others = [{"other"}] * 30
    pairs = find_pairs([*sentences, *others], [*sentences, *others])
    assert [pair for pair in pairs if pair.source == "York"] == [StandIn("York", "York")]


def test_words_survive_their_file(tmp_path):
    words = count(tmp_path, SOURCES, TARGETS)
    words.save(tmp_path / "words.json")
    loaded = KnownWords.load(tmp_path / "words.json", lambda path: path.read_bytes())
    assert loaded == words


@pytest.mark.parametrize("content", [b"", b"[]", b'{"known": 3}', b"\xff"])
def test_a_damaged_file_of_words_is_refused(tmp_path, content):
    with pytest.raises(UserError, match=r"words\.json"):
        KnownWords.load(tmp_path / "words.json", lambda path: content)


def test_a_text_of_which_most_tokens_are_unknown_is_refused():
    vocab = build_vocab(Counter(["Hund", "Rad"]))
    counts = [Counter({"собака": 7, "Hund": 3}), Counter({"Rad": 1})]
    with pytest.raises(UserError, match=r"70\.0 %"):
        check_unknown(counts, [vocab, vocab])


def count(folder, sources, targets):
    paths = [folder / "source", folder / "target"]
    for path, lines in zip(paths, [sources, targets], strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return count_words(paths, ("de", "en"))
