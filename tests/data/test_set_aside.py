"""Which pairs are set aside for validation."""

import random

import pytest

from seq2seq_attn.data.set_aside import assign, choose_sources, source_digest

PAIRS = [(f"sentence {i}", f"Satz {i}") for i in range(40)]


def split(pairs):
    splits = {"train": [], "valid": [], None: []}
    for pair, name in assign(pairs, choose_sources(pairs)):
        splits[name].append(pair)
    return splits


@pytest.mark.parametrize(("num_pairs", "num_valid"), [(2, 1), (40, 4), (12_000, 1_000)])
def test_a_tenth_with_the_smallest_digests_in_any_order(num_pairs, num_valid):
    pairs = [(f"sentence {i}", f"Satz {i}") for i in range(num_pairs)]
    by_digest = sorted(pairs, key=lambda pair: source_digest(pair[0]) or b"")
    for order in (pairs, random.Random(1).sample(pairs, num_pairs)):
        splits = split(order)
        assert sorted(splits["valid"]) == sorted(by_digest[:num_valid])
        assert sorted(splits["train"]) == sorted(by_digest[num_valid:])
        assert splits[None] == []


def test_no_source_that_is_set_aside_stays_in_train_and_blank_pairs_are_never_chosen():
    source, target = split(PAIRS)["valid"][0]
    again = [(source, target), (f" {source}\t", "another translation")]
    blank = [("", "x"), (" ", "y"), ("z", "\t")]
    splits = split([*blank, *PAIRS, *again])
    assert splits["valid"].count((source, target)) == 1
    assert splits[None] == again
    assert splits["train"][:3] == blank
    valid_sources = {pair[0] for pair in splits["valid"]}
    assert not valid_sources & {pair[0].strip() for pair in splits["train"]}


def test_a_text_of_one_source_has_nothing_to_set_aside():
    assert choose_sources([PAIRS[0], PAIRS[0]]) == set()


def test_variants_of_a_word_stay_together():
    """Pronunciations of a word in a dictionary."""
    variants = []
    for i in range(40):
        for mark in ("", "(1)", "(12)"):
            variants.append((f"word{i}{mark}", f"w er d {i} {mark}"))
    splits = split(variants)
    valid_words = {source.partition("(")[0] for source, _ in splits["valid"]}
    train_words = {source.partition("(")[0] for source, _ in splits["train"]}
    assert len(splits["valid"]) == 4
    assert not valid_words & train_words


def test_a_mark_after_a_space_or_alone_is_text():
    assert source_digest("see section(2)") != source_digest("see section")
    assert source_digest("(2)") is not None
