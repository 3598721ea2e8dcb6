"""Sentences end at the marks of all scripts; abbreviations, numbers and quotations do not end
them."""

import re
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from seq2seq_attn.text import sentences
from seq2seq_attn.text.normalize import one_line
from seq2seq_attn.text.sentences import split_sentences

ROWS = (Path(__file__).parent / "sentences.tsv").read_text("utf-8").splitlines()
"""language, tab, line; `|` between two sentences"""


@pytest.mark.parametrize("row", ROWS)
def test_every_sentence_is_split_off_and_no_trap_splits_one(row):
    marked = row.split("\t")[1]
    found = split_sentences(marked.replace("|", ""))
    assert "|".join(found) == re.sub(r"\|( *)", r"\1|", marked)


def test_a_bar_may_stand_for_the_danda():
    assert split_sentences("कुत्ता सोता है | औरत पढ़ती है |") == ["कुत्ता सोता है | ", "औरत पढ़ती है |"]
    assert len(split_sentences("a | b | c")) == 1


@given(st.text(st.sampled_from("aB1 .!?…\"'()。？」“»\t\u2028\ud800z"), max_size=40))
def test_sentences_are_the_line_and_none_is_blank(line):
    found = split_sentences(line)
    assert "".join(found) == one_line(line)
    assert all(sentence.strip() for sentence in found[1:])


def test_the_marks_end_sentences_in_unicode():
    for mark in sentences._MARKS:
        assert regex.fullmatch(r"\p{Sentence_Terminal}", mark), mark
