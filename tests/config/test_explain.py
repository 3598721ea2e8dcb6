"""Words of messages."""

import pytest

from seq2seq_attn.config import name_numbers


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([3], "line 3"), ([1, 3, 7], "lines 1, 3 and 7"), ([*range(2, 14)], "11 and 2 more")],
)
def test_long_lists_of_numbers_are_cut(numbers, text):
    assert name_numbers("line", numbers).endswith(text)
