"""Three sentences of 5, 2 and 1 source positions, encoded at random, and attention variants on
them."""

import pytest
import torch

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.model.encoder.base import Encoded, zeroed
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.variants import build_variant
from tests.modules import randomize

QUERY_SIZE = 13
MEMORY_SIZE = 22
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
    generator = torch.Generator().manual_seed(2)
    return torch.randn(3, 3, QUERY_SIZE, dtype=torch.float64, generator=generator)


@pytest.fixture
def build():
    def build(name, *, query_size=QUERY_SIZE, memory_size=MEMORY_SIZE, **options):
        torch.manual_seed(1)
        sizes = {
            "query_size": query_size,
            "memory_size": memory_size,
            "normalizer": softmax.weights,
        }
        return randomize(build_variant("attention", name, options, **sizes)).double()

    return build


def additive_scores(attention, query_H, values_SM, more_SA=0.0):
    """v^T tanh(W q + U h_j + more_j) of each position j."""
    hidden_SA = attention.query_projection(query_H) + attention.key_projection(values_SM)
    return torch.tanh(hidden_SA + more_SA) @ attention.score_weight_A
