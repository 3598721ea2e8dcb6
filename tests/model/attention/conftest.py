"""Three sentences of 5, 2 and 1 source positions, encoded at random, and attention variants on
them."""

import pytest
import torch

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.model.encoder.base import Encoded, zeroed
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.variants import build_variant

QUERY_SIZE, MEMORY_SIZE = 13, 22
LENGTHS = (5, 2, 1)


@pytest.fixture
def source():
    return collate_source([[5, 6, 7, 8], [9], []])


@pytest.fixture
def encoded(source):
    torch.manual_seed(0)
    values = torch.randn(3, 5, MEMORY_SIZE, dtype=torch.float64)
    return zeroed(Encoded(values, source.mask_BS, values[:, 0]))


@pytest.fixture
def queries():
    """Of three steps."""
    return torch.randn(
        3, 3, QUERY_SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(2)
    )


@pytest.fixture
def build():
    def build(name, *, query_size=QUERY_SIZE, memory_size=MEMORY_SIZE, **options):
        torch.manual_seed(1)
        sizes = {
            "query_size": query_size,
            "memory_size": memory_size,
            "normalizer": softmax.weights,
        }
        attention = build_variant("attention", name, options, **sizes)
        for parameter in attention.parameters():
            torch.nn.init.uniform_(parameter, -0.5, 0.5)
        return attention.double()

    return build
