"""Text whose sides are shifted, or do not belong together."""

import random

import pytest

from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.shifts import check_sides
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import packaged
from seq2seq_attn.text.lines import read_lines

CAPTIONS = [read_lines(packaged("data/captions") / f"test.{side}.bz2") for side in ("de", "en")]
WORDS = sorted({"".join(random.Random(i).choices("abdeginorst", k=2 + i % 9)) for i in range(999)})
DIGITS = [" ".join(random.Random(i).choices("0123456789", k=3 + i % 10)) for i in range(400)]
TEXTS = {
    "captions": CAPTIONS,
    "sorted words": (WORDS, [" ".join(word.upper()) for word in WORDS]),
    "digits": (DIGITS, [line[::-1] for line in DIGITS]),
}


def check(sources, targets):
    return check_sides("text", list(zip(range(len(sources)), sources, targets, strict=True)))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("size", [20, 100, 300, 1000])
def test_pairs_that_belong_together_pass(name, size):
    assert check(*[lines[:size] for lines in TEXTS[name]]) == []


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("shift", [-3, -1, 2])
def test_shifted_sides_are_refused(name, shift):
    sources, targets = TEXTS[name]
    with pytest.raises(UserError, match=rf"i\{shift:+d} "):
        check(sources, [*targets[-shift:], *targets[:-shift]])


@pytest.mark.parametrize("name", TEXTS)
def test_the_first_shifted_line_is_named(name):
    sources, targets = TEXTS[name]
    end = len(targets) - 50
    shifted = [*targets[:100], "", *targets[100 : end - 1], *targets[end:]]
    with pytest.raises(UserError, match=r"line (9\d|10\d) to") as raised:
        check(sources, shifted)
    assert "i+1" in str(raised.value)


@pytest.mark.parametrize("name", TEXTS)
def test_unrelated_sides_are_reported(name):
    sources, targets = TEXTS[name]
    [note] = check(sources, random.Random(1).sample(targets, len(targets)))
    assert "text" in note


def test_a_dialogue_whose_targets_are_the_next_or_previous_lines_passes():
    _, lines = CAPTIONS
    check(lines[:-1], lines[1:])
    check(lines[1:], lines[:-1])


def test_shifted_substrings_of_the_sources_are_refused():
    _, lines = CAPTIONS
    parts = [line[5:] for line in lines]
    with pytest.raises(UserError, match=r"i\+1 "):
        check(lines, ["", *parts[:-1]])


def test_a_long_text_is_sampled(files_config, write_pairs):
    pairs = list(zip(*CAPTIONS, strict=True)) * 3
    sources, targets = zip(*pairs, strict=True)
    prepared = prepare_corpus(files_config(train=write_pairs("good", pairs)))
    assert not [note for note in prepared.meta["notes"] if "good" in note]
    shifted = list(zip(sources, ["", *targets[:-1]], strict=True))
    with pytest.raises(UserError, match=r"shifted.*i\+1 "):
        prepare_corpus(files_config(train=write_pairs("shifted", shifted)))
