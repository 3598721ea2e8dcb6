"""Words of messages."""

import pytest

from seq2seq_attn.config import name_numbers


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([3], "line 3"), ([1, 3, 7], "lines 1, 3 and 7"), ([*range(2, 14)], "11 and 2 more")],
)
def test_numbers_of_a_noun_are_listed_or_counted(numbers, text):
    assert name_numbers("line", numbers).endswith(text)
