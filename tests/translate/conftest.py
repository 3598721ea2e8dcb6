"""Comparison of translations."""

import numpy as np
import pytest


def texts(translations):
    return [translation.text for translation in translations]


def assert_same(translations, expected, *, rel=1e-4):
    """Assert that translations differ in rounding alone."""
    assert len(translations) == len(expected)
    for one, other in zip(translations, expected, strict=True):
        for name in ("text", "tokens", "source_tokens", "unknown", "heaviest"):
            assert getattr(one, name) == getattr(other, name)
        assert one.log_prob == pytest.approx(other.log_prob, rel=rel, abs=1e-6)
        assert (one.attention is None) == (other.attention is None)
        if one.attention is not None:
            np.testing.assert_allclose(one.attention, other.attention, atol=rel)
