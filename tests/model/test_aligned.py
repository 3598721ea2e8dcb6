"""Where logits lie."""

import pytest
import torch

from seq2seq_attn.model.aligned import aligned_empty


@pytest.mark.parametrize("num_ids", [1, 63, 64, 65, 5893])
@pytest.mark.parametrize("num_rows", [0, 1, 3])
def test_rows_begin_at_multiples(num_rows, num_ids):
    like = torch.empty(0, dtype=torch.bfloat16)
    logits = aligned_empty(num_rows, num_ids, like=like)
    assert logits.shape == (num_rows, num_ids)
    assert logits.dtype == torch.bfloat16
    assert logits.stride(0) % 64 == 0
    assert logits.stride(1) == 1
