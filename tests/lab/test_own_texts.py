"""The generated texts of the laboratory: their pairs are distinct and true."""

from datetime import date

import pytest

from scripts.laboratory.own_texts import GENERATED, distinct_pairs

PAIRS = {name: distinct_pairs(make, 200) for name, (_, make, _) in GENERATED.items()}


@pytest.mark.parametrize("name", PAIRS)
def test_no_source_comes_twice(name):
    assert len({source for source, _ in PAIRS[name]}) == 200
    assert distinct_pairs(GENERATED[name][1], 200) == PAIRS[name]


def test_a_date_is_that_of_the_source():
    for source, target in PAIRS["dates"]:
        assert str(date.fromisoformat(target).day) in source
        assert target[2:4] in source


def test_digits_are_reversed():
    assert all(source == target[::-1] for source, target in PAIRS["digits"])


@pytest.mark.parametrize("verb", ["walk", "look", "run", "jump"])
def test_a_command_has_the_actions_of_its_verbs(verb):
    for source, target in PAIRS["commands"]:
        assert (verb in source) == (f"I_{verb.upper()}" in target)
