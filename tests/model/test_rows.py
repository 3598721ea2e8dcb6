"""Rows of memories and states."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch

from seq2seq_attn.model.tensors import select_rows

INDEX_R = torch.tensor([2, 0, 0])


class Fields(NamedTuple):
    first: Any
    second: Any = None


@dataclass
class Record:
    tensor: torch.Tensor


def test_tuples_of_tensors_are_reordered():
    tensor = torch.arange(3)
    found = select_rows(Fields((tensor, Fields(tensor))), INDEX_R)
    assert isinstance(found, Fields)
    assert torch.equal(found.first[0], INDEX_R)
    assert torch.equal(found.first[1].first, INDEX_R)
    assert (found.first[1].second, found.second) == (None, None)


@pytest.mark.parametrize("state", [[torch.arange(3)], {"a": torch.arange(3)}, Record(torch.arange(3)), "abc"])
def test_what_would_be_left_in_the_old_order_is_refused(state):
    name = type(state).__name__
    with pytest.raises(TypeError, match=name):
        select_rows(Fields(torch.arange(3), state), INDEX_R)
