"""Which pairs are set aside for validation."""

from __future__ import annotations

import random

from seq2seq_attn.data.own_text import assign, choose_sources, source_digest

PAIRS = [(f"sentence {i}", f"Satz {i}") for i in range(40)]


def split(pairs: list[tuple[str, str]]) -> dict[str | None, list[tuple[str, str]]]:
    found: dict[str | None, list[tuple[str, str]]] = {"train": [], "valid": [], None: []}
    for source, target, name in assign(pairs, choose_sources(pairs)):
        found[name].append((source, target))
    return found


def test_a_split_made_by_hand() -> None:
    by_digest = sorted(PAIRS, key=lambda pair: source_digest(pair[0]) or b"")
    found = split(PAIRS)
    assert sorted(found["valid"]) == sorted(by_digest[:4])  # a tenth of 40
    assert sorted(found["train"]) == sorted(by_digest[4:])
    assert found[None] == []


def test_the_order_of_the_file_does_not_matter() -> None:
    shuffled = random.Random(1).sample(PAIRS, len(PAIRS))
    assert set(split(shuffled)["valid"]) == set(split(PAIRS)["valid"])


def test_a_growing_corpus_keeps_most_of_what_was_set_aside() -> None:
    kept = set(split(PAIRS[:39])["valid"]) & set(split(PAIRS)["valid"])
    assert len(kept) >= 3


def test_no_source_that_is_set_aside_stays_in_train() -> None:
    source, target = split(PAIRS)["valid"][0]
    again = [(source, target), (f" {source}\t", "another translation")]
    found = split([*PAIRS, *again])
    assert found["valid"].count((source, target)) == 1
    assert found[None] == again
    assert not {pair[0] for pair in found["valid"]} & {pair[0].strip() for pair in found["train"]}


def test_blank_pairs_are_never_chosen() -> None:
    found = split([("", "x"), (" ", "y"), ("z", "\t"), *PAIRS])
    assert found["train"][:3] == [("", "x"), (" ", "y"), ("z", "\t")]
    assert len(found["valid"]) == 4


def test_few_different_pairs() -> None:
    assert len(split(PAIRS[:2])["valid"]) == 1
    assert split([PAIRS[0], PAIRS[0]]) == {"train": [PAIRS[0], PAIRS[0]], "valid": [], None: []}


def test_many_pairs_give_a_thousand() -> None:
    many = [(f"{i}", "x") for i in range(12_000)]
    found = split(many)
    by_digest = sorted(many, key=lambda pair: source_digest(pair[0]) or b"")
    assert sorted(found["valid"]) == sorted(by_digest[:1000])


def test_variants_of_a_word_stay_together() -> None:
    """Pronunciations of a word in a dictionary; with a space, the mark is text."""
    variants = [(f"word{i}{mark}", f"w er d {i} {mark}") for i in range(40) for mark in ("", "(1)", "(12)")]
    found = split(variants)
    words = {name: {source.partition("(")[0] for source, _ in pairs} for name, pairs in found.items()}
    assert len(found["valid"]) == 4
    assert not words["valid"] & words["train"]
    assert source_digest("see section(2)") != source_digest("see section")
    assert source_digest("(2)") is not None
