"""The variants that score by dot products."""

import pytest
import torch

from tests.model.attention.conftest import LENGTHS


@pytest.mark.parametrize(
    ("name", "options", "divisor"),
    [
        ("dot", {}, 1.0),
        ("bilinear", {}, 1.0),
        ("bilinear", {"is_scaled": True}, 13**0.5),
        ("scaled_dot", {}, 13**0.5),
        ("scaled_dot", {"attention_size": 5}, 5**0.5),
    ],
)
def test_weights_are_those_of_a_loop(build, encoded, source, queries, name, options, divisor):
    attention = build(name, query_size=22 if name == "dot" else 13, **options)
    asked = torch.nn.functional.pad(queries[0], (0, 9), value=0.5) if name == "dot" else queries[0]
    memory, state = attention.prepare(encoded, source)
    weights_BS = attention.step(asked, memory, state).weights_BS
    project_query, project_key = (
        getattr(attention, f"{side}_projection", torch.nn.Identity()) for side in ("query", "key")
    )
    for row, length in enumerate(LENGTHS):
        keys = [project_key(encoded.values_BSM[row, s]) for s in range(length)]
        scores = torch.stack([project_query(asked[row]) @ key / divisor for key in keys])
        torch.testing.assert_close(weights_BS[row, :length], scores.softmax(dim=0))
        assert not weights_BS[row, length:].any()
