"""Attention maps: their labels."""

from __future__ import annotations

import numpy as np
import pytest

from seq2seq_attn.translate.attention_map import AttentionMap


def test_a_row_or_column_beyond_the_tokens_is_eos():
    attention = AttentionMap.of(["a", "b", "<eos>"], ["x"], np.eye(2, 3))
    assert attention.source_tokens == ["a", "b", "<eos>"]
    assert attention.target_tokens == ["x", "<eos>"]
    with pytest.raises(ValueError, match="do not fit 1 tokens"):
        AttentionMap.of(["a", "b", "c"], ["x"], np.eye(3))
