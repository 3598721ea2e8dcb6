"""Noise in parallel text: pairs of each kind are detected, ordinary pairs are not."""

import pytest

from seq2seq_attn.text.noise import NOISE, find_noise

CLEAN = [
    ("the house is green", "la casa es verde"),
    ("we see the old house", "vemos la casa vieja"),
    ("the old man is here", "el viejo está aquí"),
] * 10
NOISY_PAIRS = [
    ("copies", "Grüß Gott, Wien!", "Grüß Gott, Wien!"),
    ("segmented", "the un@@ known hou@@ se", "la casa desconocida"),
    ("segmented", "▁the ▁house", "la casa"),
    ("segmented", "it &apos;s here", "está aquí"),
    ("segmented", "the house , here .", "la casa, aquí."),
    ("ratio", "the house", "la casa que vemos aquí es la casa vieja del hombre viejo"),
]
ORDINARY_PAIRS = [
    ("“Spaß«” – été… Ça va ? NÃO", "«Élan», naïve Straße – 3,5 € …"),
    ("mail@example.org", "@user x"),
    ("I see ... so", "..."),
    ("Да", "Yes"),
    ("猫。", "A cat."),
    ("", ""),
]


@pytest.mark.parametrize(("kind", "source", "target"), NOISY_PAIRS)
def test_a_pair_of_each_kind_is_found(kind: str, source: str, target: str) -> None:
    assert [*find_noise(CLEAN, [(source, target)], list(NOISE))] == [[kind]]


def test_kinds_that_are_not_named_are_not_looked_for() -> None:
    pairs = [(source, target) for _, source, target in NOISY_PAIRS]
    assert not any(find_noise(CLEAN, pairs, ["duplicates"]))


def test_duplicates_are_pairs_that_occurred_before() -> None:
    pairs = [*CLEAN[:2], CLEAN[0]]
    assert [*find_noise(CLEAN, pairs, ["duplicates"])] == [[], [], ["duplicates"]]


def test_ordinary_pairs_are_no_noise() -> None:
    assert not any(find_noise(CLEAN, ORDINARY_PAIRS, list(NOISE)))
