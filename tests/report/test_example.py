"""The sentence that a page begins with: translated well, of middle length, reordered, without
unknown words."""

import numpy as np
import pytest

from seq2seq_attn.report.example import choose_example
from seq2seq_attn.translate.attention_map import AttentionMap, PackedMap, pack_map


def attention(
    num_tokens: int, *, order: list[int] | None = None, sharpness: float = 0.9, unknown=()
) -> PackedMap:
    """A square map with <eos>; `order`: the source position of each row."""
    size = num_tokens + 1
    weights_TS = np.full((size, size), (1 - sharpness) / num_tokens)
    weights_TS[np.arange(size), order or range(size)] = sharpness
    tokens = [*(f"w{i}" for i in range(num_tokens)), "<eos>"]
    return pack_map(AttentionMap(tokens, tokens, weights_TS, unknown))


VERB_LAST = [0, 1, 9, 2, 3, 4, 5, 6, 7, 8, 10]
TURNED = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 10]


@pytest.mark.parametrize(
    ("maps", "chrf", "expected"),
    [
        pytest.param(
            [attention(3), attention(10), attention(30)], [100, 100, 100], 1, id="of middle length"
        ),
        pytest.param([attention(10), attention(10), attention(10)], [60, 100, 99], 1, id="exact"),
        pytest.param(
            [attention(10), attention(10, order=VERB_LAST)], [100, 100], 1, id="reordered"
        ),
        pytest.param(
            [attention(10), attention(10, order=VERB_LAST)],
            [100, 98],
            0,
            id="exact before reordered",
        ),
        pytest.param(
            [attention(10), attention(10, order=VERB_LAST)],
            [80, 76],
            1,
            id="nearly the best, reordered",
        ),
        pytest.param([attention(10, sharpness=0.6), attention(10)], [100, 100], 1, id="sharp"),
        pytest.param([attention(10, unknown=(2,)), attention(10)], [100, 90], 1, id="known"),
        pytest.param([attention(3), attention(30)], [50, 40], 0, id="no length will do: the best"),
        pytest.param(
            [None, attention(10), attention(10)], [100, 100, 100], 1, id="with a map, the first"
        ),
    ],
)
def test_the_choice(maps, chrf, expected):
    assert choose_example([[None] * len(maps), maps], [chrf, chrf]) == (1, expected)


@pytest.mark.parametrize(
    ("orders", "right", "other", "expected"),
    [
        pytest.param(
            [VERB_LAST, TURNED, None], [100, 100, 100], [50, 50, 50], 1, id="the most reordered"
        ),
        pytest.param(
            [TURNED, VERB_LAST, None],
            [100, 100, 100],
            [100, 70, 60],
            1,
            id="that the other run gets wrong",
        ),
        pytest.param(
            [TURNED, VERB_LAST, None],
            [90, 100, 100],
            [50, 100, 99],
            2,
            id="that this run gets right",
        ),
        pytest.param(
            [None, VERB_LAST], [100, 100], [100, 100], 1, id="both right: the most reordered"
        ),
    ],
)
def test_what_attention_alone_gets_right_comes_first(orders, right, other, expected):
    maps = [attention(10, order=order) for order in orders]
    assert choose_example([maps, [None] * len(maps)], [right, other]) == (0, expected)
    assert choose_example([[None] * len(maps), maps], [other, right]) == (1, expected)


@pytest.mark.parametrize("maps", [[], [[None, None]], [[attention(10, unknown=(1,))]]])
def test_nothing_to_show(maps):
    assert choose_example(maps, [[50.0] * len(of_run) for of_run in maps]) is None
