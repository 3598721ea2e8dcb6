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


def noise(pairs, kinds=tuple(NOISE)):
    """The positions of noisy pairs behind `CLEAN`, by kind."""
    positions = find_noise(lambda: [*CLEAN, *pairs], kinds)
    return {kind: {n - len(CLEAN) for n in positions[kind]} for kind in kinds}


CLEAN_KINDS = ["copies", "segmented", "ratio"]


@pytest.mark.parametrize(("kind", "source", "target"), NOISY_PAIRS)
def test_a_pair_of_each_kind_is_found(kind, source, target):
    expected = {name: {0} if name == kind else set() for name in CLEAN_KINDS}
    assert noise([(source, target)], CLEAN_KINDS) == expected


def test_duplicates_are_pairs_that_occurred_before():
    repeated = set(range(3 - len(CLEAN), 0))  # `CLEAN` repeats three pairs
    assert noise([("new", "nuevo"), CLEAN[0]], ["duplicates"]) == {"duplicates": repeated | {1}}


def test_ordinary_pairs_are_no_noise():
    assert not any(noise(ORDINARY_PAIRS, CLEAN_KINDS).values())
