"""The measurement of unknown words: its sentence pairs, and what counts as kept and in place."""

import pytest

from scripts.laboratory.unknown import Item, judge, make_items

SOURCES = ["Ein Hund rennt.", "Zwei Katzen schlafen.", "Ein Hund schläft.", "Ein Mann liest."] * 5
REFERENCES = ["A dog is running.", "Two cats sleep.", "A dog is asleep.", "A man is reading."] * 5


def test_a_word_gives_way_on_both_sides():
    items = make_items(SOURCES, REFERENCES, seed=1)
    assert {item.kind for item in items} == {"number", "name", "address", "code"}
    for item in items:
        assert item.word in item.source
        assert item.word in item.reference


@pytest.mark.parametrize(
    ("hypothesis", "kept", "in_place", "other_number"),
    [
        ("The bike costs 4711 euros now.", 1, 1, 0),
        ("4711 and then the old bike is sold to a friend of mine.", 1, 0, 0),
        ("A man sells 4711 of his things to a friend of mine", 1, 1, 0),
        ("The bike costs 15 euros.", 0, 0, 1),
        ("The bike costs 4711 or 4711 euros.", 0, 0, 0),
    ],
)
def test_judge(hypothesis, kept, in_place, other_number):
    item = Item("number", "4711", "Das Rad kostet 4711 Euro.", "The bike costs 4711 euros.")
    figures = judge([item], [hypothesis])["all"]
    assert figures == {"n": 1, "kept": kept, "in_place": in_place, "other_number": other_number}
