"""Noise in parallel text: each kind is counted, ordinary pairs are not, and only what is named is dropped."""

import pytest

from seq2seq_attn.text.noise import KINDS, Noise

ENGLISH = ["the house is green", "we see the old house", "the old man is here", "we see that the man is old"]
SPANISH = ["la casa es verde", "vemos la casa vieja", "el viejo está aquí", "vemos que el hombre es viejo"]
CLEAN = list(zip(ENGLISH, SPANISH, strict=True)) * 10
OF_KIND = {
    "copies": [("Grüß Gott, Wien!", "Grüß Gott, Wien!")],
    "swapped": [("vemos la casa vieja", "we see the old house"), ("el viejo es verde", "the man is green")],
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


@pytest.mark.parametrize(("kind", "pairs"), OF_KIND.items())
def test_each_kind_is_counted_and_dropped_if_asked(kind: str, pairs: list[tuple[str, str]]) -> None:
    for pair in pairs:
        for drop in ([], [kind]):
            noise = Noise(CLEAN, drop)
            assert noise.keeps(*pair) == (not drop), pair
            assert noise.counts == {**dict.fromkeys(KINDS, 0), kind: 1}
            [note] = noise.notes("train")
            assert kind in note
            assert (f"data.filter=[{kind}]" in note) == (not drop)


def test_duplicates() -> None:
    noise = Noise(CLEAN, ["duplicates"])
    assert [noise.keeps(*pair) for pair in CLEAN] == [number < 4 for number in range(40)]
    assert noise.counts["duplicates"] == 36


def test_ordinary_pairs_are_no_noise() -> None:
    noise = Noise(CLEAN, [])
    for pair in [*ORDINARY, *CLEAN]:
        assert noise.keeps(*pair)
        assert not noise.counts.total(), pair
