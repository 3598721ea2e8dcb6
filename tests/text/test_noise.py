"""Noise in parallel text: pairs of each kind are detected, ordinary pairs are not."""

import pytest

from seq2seq_attn.text.noise import KINDS, Noise, describe_noise

ENGLISH = [
    "the house is green",
    "we see the old house",
    "the old man is here",
    "we see that the man is old",
]
SPANISH = [
    "la casa es verde",
    "vemos la casa vieja",
    "el viejo está aquí",
    "vemos que el hombre es viejo",
]
CLEAN = list(zip(ENGLISH, SPANISH, strict=True)) * 10
PAIRS_BY_KIND = {
    "copies": [("Grüß Gott, Wien!", "Grüß Gott, Wien!")],
    "swapped": [
        ("vemos la casa vieja", "we see the old house"),
        ("el viejo es verde", "the man is green"),
    ],
    "mojibake": [
        ("the cafÃ© is open", "el café está abierto"),
        ("we donâ€™t know", "no lo sabemos"),
        ("the text", "Ð¢ÐµÐºÑ\x81Ñ‚"),
        ("a cat", "çŒ«ã\x81Œã\x81„ã‚‹"),
        ("a na\ufffdve man", "un hombre ingenuo"),
    ],
    "segmented": [
        ("the un@@ known hou@@ se", "la casa desconocida"),
        ("▁the ▁house", "la casa"),
        ("it &apos;s here", "está aquí"),
        ("the house , here .", "la casa, aquí."),
    ],
    "ratio": [("the house", "la casa que vemos aquí es la casa vieja del hombre viejo")],
}
ORDINARY = [
    ("“Spaß«” – été… Ça va ? NÃO", "«Élan», naïve Straße – 3,5 € …"),
    ("Un año, 20 °C ± 2 µm", "½ £ ¥ § ¶"),
    ("mail@example.org", "@user x"),
    ("I see ... so", "..."),
    ("Да", "Yes"),
    ("we see the house", "the old man is here"),  # one language, but not exchanged
    ("猫。", "A cat."),
    ("", ""),
]


@pytest.mark.parametrize("kind", PAIRS_BY_KIND)
def test_each_kind_is_detected(kind: str) -> None:
    pairs = PAIRS_BY_KIND[kind]
    indices = Noise(CLEAN).find(*zip(CLEAN[0], *pairs, CLEAN[1], strict=True))
    assert indices == {**{other: [] for other in PAIRS_BY_KIND}, kind: [*range(1, len(pairs) + 1)]}
    assert set(KINDS) == {*indices, "duplicates"}


def test_duplicates_of_all_earlier_pairs() -> None:
    noise = Noise(CLEAN, ["duplicates"])
    for pairs, expected in ((CLEAN[:2], []), (CLEAN[1:4], [0]), (CLEAN[:1] * 2, [0, 1])):
        assert noise.find(*zip(*pairs, strict=True)) == {"duplicates": expected}


def test_ordinary_pairs_are_no_noise() -> None:
    noise = Noise(CLEAN).find(*zip(*ORDINARY, *CLEAN, strict=True))
    assert not any(noise.values())


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_line_for_each_kind_that_occurs_names_how_to_drop_it(is_dropped: bool) -> None:
    [line] = describe_noise("train", {"copies": 2, "ratio": 0}, is_dropped=is_dropped)
    assert "2 copies" in line
    assert ("data.filter=[copies]" in line) != is_dropped
