"""Numbers of a line that its translation lacks."""

import pytest

from seq2seq_attn.translate.numbers import compare_numbers, find_numbers


@pytest.mark.parametrize(
    ("line", "text", "named"),
    [
        ("52 Birnen", "24 pears", ["52", "24"]),
        ("52 Birnen", "pears", ["52"]),
        ("52 und 52 Birnen", "52 and 25 pears", ["52", "25"]),
        ("1.500,25 Euro", "1,500.25 euros", []),
        ("10 000 Euro", "10,000 euros", []),
        ("um 10:45 Uhr", "at 10.45", []),
        ("im Jahr 1957 200 Leute", "200 people in 1957", []),
        ("am 05. Mai", "on May 5", []),
        ("٢٤ كتابا", "24 books", []),
        ("zwei Birnen", "2 pears", []),
        ("2 Birnen", "two pears", []),
        ("Halle 24", "the hall", []),
    ],
)
def test_a_changed_number_is_named_by_one_warning(line, text, named):
    ignored = ["24"] if "Halle" in line else []
    warnings = compare_numbers(find_numbers(line, ignored), find_numbers(text, []))
    assert len(warnings) == min(1, len(named))
    assert find_numbers(" ".join(warnings), []) == named
