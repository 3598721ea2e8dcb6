"""The generated texts of the laboratory: their pairs are distinct and true."""

from datetime import date
from pathlib import Path

import pytest

from scripts.laboratory.budgets import budget
from scripts.laboratory.own_texts import GENERATED, distinct_pairs, write_names
from scripts.laboratory.pages.budgets import leave_one_out
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


def test_a_text_is_left_out_of_the_choice_of_its_budget():
    exact = {"easy": (99, 100, 100), "even": (98, 99, 99), "hard": (70, 90, 100)}
    rows = {}
    for name, scores in exact.items():
        runs = [{"scores": {"wer": 1.0, "exact": score}, "num_pairs": 9} for score in scores]
        by_factor = dict(zip(("0.5", "1", "2"), runs, strict=True))
        rows[name] = {"about": name, "by_factor": by_factor}
    rows["even"]["by_factor"]["4"] = rows["even"]["by_factor"]["2"]
    left_out = leave_one_out(rows)
    assert [text["factor"] for text in left_out] == ["2", "2", "1"]
    assert [round(text["share"]) for text in left_out] == [100, 100, 90]


def test_a_multiple_of_a_budget_keeps_the_batches():
    settings = budget({"max_updates": 3_400, "batch_size": 32}, 2.0)
    assert settings["train.max_updates"] == 6_800
    assert settings["train.batch.size"] == 32
