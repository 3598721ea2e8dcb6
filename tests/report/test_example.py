"""The sentence that a page begins with: translated well, of middle length, reordered, without
unknown words."""

import numpy as np
import pytest

from seq2seq_attn.report.example import choose_example
from seq2seq_attn.translate.attention_map import AttentionMap, pack_map


def attention(num_tokens, *, order=None, sharpness=0.9, unknown=()):
    """A square map with <eos>; `order`: the source position of each row."""
    size = num_tokens + 1
    weights_TS = np.full((size, size), (1 - sharpness) / num_tokens)
    weights_TS[np.arange(size), order or range(size)] = sharpness
    tokens = [*(f"w{i}" for i in range(num_tokens)), "<eos>"]
    return pack_map(AttentionMap(tokens, tokens, weights_TS, unknown))


VERB_LAST = [0, 1, 9, 2, 3, 4, 5, 6, 7, 8, 10]
TURNED = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 10]
PLAIN = attention(10)
REORDERED = attention(10, order=VERB_LAST)


@pytest.mark.parametrize(
    ("maps", "chrf", "expected"),
    [
        ([attention(3), PLAIN, attention(30)], [100, 100, 100], 1),  # middle length
        ([PLAIN, PLAIN, PLAIN], [60, 100, 99], 1),  # exact
        ([PLAIN, REORDERED], [100, 100], 1),  # reordered
        ([PLAIN, REORDERED], [100, 98], 0),  # exact before reordered
        ([PLAIN, REORDERED], [80, 76], 1),  # nearly the best, reordered
        ([attention(10, sharpness=0.6), PLAIN], [100, 100], 1),  # sharp
        ([attention(10, unknown=(2,)), PLAIN], [100, 90], 1),  # known
        ([attention(3), attention(30)], [50, 40], 0),  # no length will do: the best
        ([None, PLAIN, PLAIN], [100, 100, 100], 1),  # with a map, the first
    ],
)
def test_choose_example_prefers(maps, chrf, expected):
    example = choose_example([[None] * len(maps), maps], [chrf, chrf])
    assert example == {"run": 1, "row": expected}


@pytest.mark.parametrize(
    ("orders", "right", "other", "expected"),
    [
        ([VERB_LAST, TURNED, None], [100, 100, 100], [50, 50, 50], 1),  # the most reordered
        ([TURNED, VERB_LAST, None], [100, 100, 100], [100, 70, 60], 1),  # the other run is wrong
        ([TURNED, VERB_LAST, None], [90, 100, 100], [50, 100, 99], 2),  # this run is right
        ([None, VERB_LAST], [100, 100], [100, 100], 1),  # both right: the most reordered
    ],
)
def test_what_attention_alone_gets_right_comes_first(orders, right, other, expected):
    maps = [attention(10, order=order) for order in orders]
    without = [None] * len(maps)
    assert choose_example([maps, without], [right, other]) == {"run": 0, "row": expected}
    assert choose_example([without, maps], [other, right]) == {"run": 1, "row": expected}


@pytest.mark.parametrize("maps", [[], [[None]], [[attention(10, unknown=(1,))]]])
def test_nothing_to_show(maps):
    assert choose_example(maps, [[50.0]]) is None
