"""The generated texts of the laboratory: their pairs are distinct and true."""

from datetime import date
from pathlib import Path

import pytest

from scripts.laboratory.own_texts import GENERATED, distinct_pairs, write_names
from seq2seq_attn.files import write_json
from seq2seq_attn.text.lines import read_lines

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


def test_all_names_of_a_city_are_in_the_same_table(tmp_path):
    cities = {n: {"name": f"C{n}", "alternatenames": ["अ" * n, f"ब{'अ' * n}"]} for n in range(900)}
    write_json(tmp_path / "cities", cities)
    tables = [
        set(read_lines(path)) for path in map(Path, write_names(tmp_path / "cities", tmp_path))
    ]
    names = [{line.split("\t")[1] for line in lines} for lines in tables]
    assert list(map(len, names)) == [100, 400, 400]
    assert not names[0] & names[1] | names[1] & names[2] | names[0] & names[2]
