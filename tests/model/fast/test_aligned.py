"""Where logits lie."""

import pytest
import torch

from seq2seq_attn.model.fast.aligned import aligned_empty


@pytest.mark.parametrize("num_ids", [1, 63, 64, 65, 5893])
@pytest.mark.parametrize("num_rows", [0, 1, 3])
def test_rows_begin_at_multiples(num_rows, num_ids):
    like = torch.empty(0, dtype=torch.bfloat16)
    logits = aligned_empty(num_rows, num_ids, like=like)
    assert logits.shape == (num_rows, num_ids)
    assert logits.dtype == torch.bfloat16
    assert logits.stride(0) % 64 == 0
    assert logits.stride(1) == 1


def test_what_lies_between_rows_is_no_garbage():
    torch.use_deterministic_algorithms(True)  # which fills memory that is not initialized with NaN
    try:
        logits = aligned_empty(5, 19, like=torch.zeros(1, dtype=torch.bfloat16))
        weight, found = torch.ones(19, 3, dtype=torch.bfloat16), torch.empty(5, 3, dtype=torch.bfloat16)
        torch.mm(logits.fill_(1.0), weight, out=found)  # where a processor has AMX, it reads past an odd row
    finally:
        torch.use_deterministic_algorithms(False)
    assert (found == 19.0).all()
    assert (logits.as_strided((5, 64), (64, 1))[:, 19:] == 0.0).all()
