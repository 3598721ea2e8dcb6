"""Comparison of translations."""

from collections.abc import Sequence

import numpy as np
import pytest

from seq2seq_attn.translate.translation import Translation


def assert_same(
    translations: Sequence[Translation], expected: Sequence[Translation], *, rel: float = 1e-4
) -> None:
    """Assert that translations differ in rounding alone."""
    assert len(translations) == len(expected)
    for one, other in zip(translations, expected, strict=True):
        for name in ("text", "tokens", "source_tokens", "unknown", "heaviest"):
            assert getattr(one, name) == getattr(other, name)
        assert one.log_prob == pytest.approx(other.log_prob, rel=rel, abs=1e-6)
        assert (one.attention is None) == (other.attention is None)
        if one.attention is not None:
            np.testing.assert_allclose(one.attention, other.attention, atol=rel)
